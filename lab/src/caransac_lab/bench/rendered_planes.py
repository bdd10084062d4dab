"""Rendered photographs of a plane among many other objects, with the exact homography.

The plane stands upright in a room full of small textured facets. It covers a small part of both images and is seen from
very different viewpoints. Its texture is noise or a repeated pattern; the copies of the motif differ slightly, as
bricks do. All matches are of real features: wrong ones confuse copies of the motif, facets, or facets and plane. Facets
that are visible in both images also have right matches, each facet with its own homography.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from caransac.camera import Camera
from caransac.geometry import Array, Floats, rotation_from_vector
from caransac.io.images import FeatureKind, Image, match_images
from caransac.synthetic import PlanePair, transfer
from caransac_lab.render import TEXEL, Face, look_at, make_noise, make_pyramid, make_smooth, render, texture_shape
from caransac_lab.synthetic.distributions import log_uniform

Pattern = Literal["noise", "tiles", "windows", "brick"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

WIDTH, HEIGHT = 800, 600
FOCAL = 0.9 * WIDTH
MIDDLE = np.array([0.0, 0.0, 1.2])  # metres; centre of the plane
NUM_FACETS = 600
X, Z = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])  # sides of the plane; its normal is -y


@dataclass(frozen=True, eq=False)
class PlaneViews:
    """Two photographs of a plane.

    Attributes:
        images: two (HEIGHT, WIDTH, 3) uint8 RGB.
        H: (3, 3) true homography of the plane, ``x2 ~ H x1``.
        corners: (4, 2) pixels of the plane's corners in image 1.
    """

    images: tuple[Image, Image]
    H: Array
    corners: Array


def photograph_plane(seed: int, pattern: Pattern) -> PlaneViews:
    """Create two photographs of a plane with a pattern. The same seed gives the same photographs."""
    rng = np.random.default_rng([seed, PATTERNS.index(pattern), 9])
    camera = Camera("SIMPLE_PINHOLE", (FOCAL, (WIDTH - 1) / 2, (HEIGHT - 1) / 2), WIDTH, HEIGHT)
    width, height = rng.uniform(0.8, 1.6), rng.uniform(0.7, 1.2)
    corner = MIDDLE - width / 2 * X - height / 2 * Z
    plane = _make_face(corner, np.stack([X, Z]), (width, height), make_texture(rng, pattern, (width, height)))
    poses, projections, quads = _draw_poses(rng, camera, corner, (width, height))
    # Half of the planes are photographed in two different rooms. Otherwise, everything else has moved between the
    # photographs. The plane is therefore the largest common object, and no other homography explains as many matches.
    room = _make_facets(rng, (width, height))
    rooms = [room, _move(rng, room) if rng.random() < 0.5 else _make_facets(rng, (width, height))]
    images = [render([plane, *room], camera, *pose) for room, pose in zip(rooms, poses, strict=True)]
    H = projections[1] @ np.linalg.inv(projections[0])
    first, second = (_expose(rng, image) for image in images)
    return PlaneViews((first, second), H / np.linalg.norm(H), quads[0])


def match_plane(views: PlaneViews, features: FeatureKind, max_features: int, name: str) -> PlanePair:
    """Return all matches of the photographs, regardless of their ratio."""
    points1, points2, ratios = match_images(*views.images, features=features, max_features=max_features)
    return PlanePair(name, points1, points2, ratios, views.H, views.corners, (WIDTH, HEIGHT), (WIDTH, HEIGHT))


def make_texture(rng: np.random.Generator, pattern: Pattern, lengths: tuple[float, float]) -> Floats:
    """Create grey levels from 0 to 1 of a plane with sides of these lengths in metres."""
    shape = texture_shape(lengths)
    noise = make_noise(rng, shape)
    if pattern == "noise":
        return noise
    x, z = np.arange(shape[0])[:, None] * TEXEL, np.arange(shape[1])[None, :] * TEXEL
    period_x, period_z = rng.uniform(0.18, 0.35, 2)
    if pattern == "brick":
        period_z *= 0.5
        x = x + 0.5 * period_x * (np.floor(z / period_z) % 2)
    u, v = (x / period_x) % 1, (z / period_z) % 1
    joint = rng.uniform(0.08, 0.16)
    motif = ((u > joint) & (v > joint)).astype(np.float32)
    if pattern == "tiles":  # all tiles have the same picture
        angle = np.arctan2(v - 0.5, u - 0.5)
        motif *= 0.7 + 0.3 * np.sin(rng.integers(2, 6) * angle + 14 * np.hypot(u - 0.5, v - 0.5))
    if pattern == "windows":  # dark windows with a frame and a crossbar
        inside = (u > 0.3) & (u < 0.85) & (v > 0.25) & (v < 0.85)
        motif -= 0.8 * (inside & (np.abs(u - 0.57) > 0.04) & (np.abs(v - 0.65) > 0.04))
    own = rng.uniform(0.1, 0.35)
    return np.asarray((1 - own) * (0.15 + 0.7 * make_smooth(motif)) + own * noise, np.float32)


def _draw_poses(
    rng: np.random.Generator, camera: Camera, corner: Array, lengths: tuple[float, float]
) -> tuple[list[tuple[Array, Array]], list[Array], list[Array]]:
    """Draw two poses. Return them, the projections (3, 3) of the plane's coordinates, and its corners (4, 2)."""
    sides = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * lengths
    angle, distance = np.radians(rng.uniform(15, 70)), rng.uniform(4, 7)
    while True:
        poses, projections, quads = [], [], []
        middle = np.radians(rng.uniform(-20, 20))
        for azimuth, radius in (
            (middle - angle / 2, distance),
            (middle + angle / 2, distance * log_uniform(rng, 0.7, 1.4)),
        ):
            elevation = np.radians(rng.uniform(-5, 25))
            around = [np.sin(azimuth) * np.cos(elevation), -np.cos(azimuth) * np.cos(elevation), np.sin(elevation)]
            R, t = look_at(MIDDLE + radius * np.array(around), MIDDLE + rng.uniform(-1.5, 1.5, 3))
            roll = rotation_from_vector([0, 0, rng.normal() * 0.15])
            R, t = roll @ R, roll @ t
            projection = camera.K @ np.stack([R @ X, R @ Z, R @ corner + t], axis=1)
            poses.append((R, t))
            projections.append(projection)
            quads.append(transfer(projection, sides))
        if all(np.all((quad > 10) & (quad < [WIDTH - 10, HEIGHT - 10])) for quad in quads):
            return poses, projections, quads


def _make_facets(rng: np.random.Generator, lengths: tuple[float, float]) -> list[Face]:
    """Create small squares all over the room, with random orientations, but not in front of the plane."""
    facets: list[Face] = []
    while len(facets) < NUM_FACETS:
        place = rng.uniform([-5, -1, -2], [5, 4, 4.5])
        if place[1] < 0.5 and np.all(np.abs(place - MIDDLE)[[0, 2]] < np.array(lengths) / 2 + 0.6):
            continue
        axes = rotation_from_vector(rng.normal(size=3) * 0.5)[[0, 2]]
        side = rng.uniform(0.15, 0.4)
        texture = make_noise(rng, texture_shape((side, side)))
        facets.append(_make_face(place, axes, (side, side), texture))
    return facets


def _move(rng: np.random.Generator, facets: list[Face]) -> list[Face]:
    """Move and rotate each facet slightly."""
    moves = rng.normal(size=(len(facets), 2, 3)) * 0.2
    return [
        replace(facet, corner=facet.corner + shift, axes=facet.axes @ rotation_from_vector(turn).T)
        for facet, (shift, turn) in zip(facets, moves, strict=True)
    ]


def _make_face(corner: Array, axes: Array, lengths: tuple[float, float], texture: Floats) -> Face:
    return Face(corner, axes, np.array(lengths), make_pyramid(texture), np.array([[40.0] * 3, [225.0] * 3]))


def _expose(rng: np.random.Generator, image: Image) -> Image:
    """Simulate a sensor: random brightness, contrast and noise."""
    grey = image * rng.uniform(0.7, 1.1) + rng.uniform(-15, 15) + rng.normal(size=image.shape) * rng.uniform(1, 4)
    return np.clip(np.rint(grey), 0, 255).astype(np.uint8)

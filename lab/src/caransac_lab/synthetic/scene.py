"""A scene of surfaces, two cameras, and the keypoints that a detector finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac_lab.synthetic.distributions import log_uniform

Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints of image 1: pixels (n, 2), cluster indices (n,) and inverse depths (n,)."""

    pixels: Array
    clusters: Integers
    inverse_depths: Array

    def take(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> Keypoints:
        """Return the chosen keypoints."""
        return Keypoints(self.pixels[chosen], self.clusters[chosen], self.inverse_depths[chosen])


@dataclass(frozen=True, eq=False)
class Views:
    """Two cameras and the pose between them. Depths of the scene are about one."""

    camera1: Camera
    camera2: Camera
    R: Array
    t: Array

    def project(self, keypoints: Keypoints) -> tuple[Array, NDArray[np.bool_]]:
        """Project the keypoints into image 2: pixels (n, 2), and whether they are inside the image (n,)."""
        rays = homogeneous(self.camera1.pixels_to_rays(keypoints.pixels)) @ self.R.T
        rays += keypoints.inverse_depths[:, None] * self.t
        ahead = rays[:, 2] > 0.05
        pixels = self.camera2.rays_to_pixels(rays[:, :2] / np.where(ahead, rays[:, 2], 1)[:, None])
        return pixels, ahead & np.all((pixels >= 0) & (pixels < image_size(self.camera2)), axis=1)


@dataclass(frozen=True, eq=False)
class Scene:
    """Surfaces seen from image 1, and clusters of keypoints on them.

    Attributes:
        camera: camera of image 1.
        faces: (s, 3, 3) inverse depths of the surfaces as affine functions of the ray (x, y, 1). A surface is the
            farthest of its three faces: a box with an edge towards the camera. The faces of a plane coincide.
        roughness: (s,) standard deviation of the logarithm of depth about the faces: zero for walls, positive for
            foliage.
        repetitive: (s,) whether the surface has a regular pattern.
        surfaces: (c,) index of the surface of each cluster.
        centres: (c, 2) centres of the clusters in pixels.
        radii: (c,) radii of the clusters in pixels.
    """

    camera: Camera
    faces: Array
    roughness: Array
    repetitive: NDArray[np.bool_]
    surfaces: Integers
    centres: Array
    radii: Array

    @property
    def num_clusters(self) -> int:
        """Number of clusters."""
        return len(self.centres)

    def middles(self) -> Keypoints:
        """Return one keypoint at the centre of each cluster."""
        return self.keypoints_at(self.centres, np.arange(self.num_clusters), np.zeros(self.num_clusters))

    def keypoints_at(self, pixels: Array, clusters: Integers, bumps: Array) -> Keypoints:
        """Return keypoints at pixels (n, 2) on the surfaces of clusters (n,), with bumps (n,) in units of roughness."""
        surfaces = self.surfaces[clusters]
        rays = homogeneous(self.camera.pixels_to_rays(pixels))
        inverse_depths = np.clip(np.min(self.faces[surfaces] @ rays[:, :, None], axis=(1, 2)), 0.02, 4)
        return Keypoints(pixels, clusters, inverse_depths * np.exp(self.roughness[surfaces] * bumps))

    def draw(self, rng: np.random.Generator, weights: Array, num_points: int) -> Keypoints:
        """Draw keypoints from clusters with given weights (c,), sometimes several on one corner."""
        clusters = rng.choice(len(weights), num_points, p=weights / weights.sum())
        pixels = self.centres[clusters] + self.radii[clusters, None] * rng.normal(size=(num_points, 2))
        bumps = rng.normal(size=len(weights))[clusters] + 0.15 * rng.normal(size=num_points)
        source = np.arange(num_points)
        repeated = rng.random(num_points) < rng.uniform(0, 0.12)
        source[repeated] = rng.integers(0, max(num_points, 1), repeated.sum())
        pixels[repeated] = pixels[source[repeated]] + rng.normal(size=(repeated.sum(), 2))
        return self.keypoints_at(reflect(pixels, image_size(self.camera)), clusters[source], bumps[source])


def image_size(camera: Camera) -> Array:
    """Return the width and height of a camera's images in pixels: (2,)."""
    return np.array([camera.width, camera.height], float)


def reflect(pixels: Array, size: Array) -> Array:
    """Reflect pixels (n, 2) beyond a border back into the image."""
    return np.asarray(np.clip(size - np.abs(size - np.abs(pixels)), 0, size))


def _draw_camera(rng: np.random.Generator) -> Camera:
    long_side = log_uniform(rng, 640, 2000)
    sides = round(long_side), round(long_side / rng.choice([1, 4 / 3, 3 / 2, 16 / 9], p=[0.05, 0.45, 0.25, 0.25]))
    width, height = sides if rng.random() < 0.75 else sides[::-1]
    cx, cy = np.array([width, height]) / 2 + rng.normal(size=2) * 0.005 * long_side
    return Camera("SIMPLE_PINHOLE", (long_side * rng.triangular(0.5, 0.85, 1.6), cx, cy), width, height)


def draw_views(rng: np.random.Generator) -> Views:
    """Draw a camera, and another one that looks at about the same place from a small or large distance."""
    camera1 = _draw_camera(rng)
    camera2 = camera1 if rng.random() < 0.6 else _draw_camera(rng)
    target1, target2 = (
        homogeneous(camera.pixels_to_rays(rng.uniform(0.25, 0.75, (1, 2)) * image_size(camera)))[0]
        for camera in (camera1, camera2)
    )
    baseline, spread = (
        (log_uniform(rng, 0.15, 1.2), (1, 0.3, 0.4)),  # wide
        (log_uniform(rng, 0.02, 0.15), (1, 0.5, 0.5)),  # narrow
        (log_uniform(rng, 0.1, 0.6), (0.15, 0.1, 1)),  # forward or backward
        (log_uniform(rng, 0.001, 0.02), (1, 1, 1)),  # nearly a rotation
    )[rng.choice(4, p=[0.5, 0.25, 0.15, 0.1])]
    direction = rng.normal(size=3) * spread
    centre2 = baseline * direction / np.linalg.norm(direction)
    sight, wanted = ((v / np.linalg.norm(v)) for v in (target1 - centre2, target2))
    axis = np.cross(sight, wanted)
    sine = np.linalg.norm(axis)
    turn = rotation_from_vector(axis / max(sine, 1e-12) * np.arctan2(sine, sight @ wanted))
    roll = rng.uniform(-np.pi, np.pi) if rng.random() < 0.12 else rng.normal() * 0.06
    R = rotation_from_vector(wanted * roll) @ turn
    return Views(camera1, camera2, R, -R @ centre2)


def draw_scene(rng: np.random.Generator, camera: Camera) -> Scene:
    """Draw one large surface and up to four smaller ones at any depth: planes, boxes and foliage."""
    size, count = image_size(camera), int(rng.integers(1, 6))
    middles = rng.uniform(0.1, 0.9, (count, 2))
    extents = rng.uniform(0.08, 0.35, (count, 2))
    middles[0], extents[0] = rng.uniform(0.35, 0.65, 2), rng.uniform(0.35, 0.6, 2)
    inverse_depths = np.exp(rng.uniform(-1.2, 0.5, count))
    slopes = np.repeat(rng.normal(size=(count, 1, 2)) * 0.4, 3, axis=1)
    slopes += (rng.random((count, 1, 1)) < 0.3) * rng.normal(size=(count, 3, 2))
    offsets = 1 - np.sum(slopes * camera.pixels_to_rays(middles * size)[:, None], axis=2, keepdims=True)
    faces = np.concatenate([slopes, offsets], axis=2) * inverse_depths[:, None, None]

    num_clusters = round(log_uniform(rng, 20, 300))
    areas = np.prod(extents, axis=1)
    surfaces = rng.choice(count, num_clusters, p=areas / areas.sum())
    centres = middles[surfaces] + extents[surfaces] * rng.uniform(-1, 1, (num_clusters, 2))
    covers = np.all(np.abs(centres[:, None] - middles) <= extents, axis=2)
    surfaces = np.argmax(covers * inverse_depths, axis=1)  # the nearest surface hides the others
    centres *= size
    return Scene(
        camera=camera,
        faces=faces,
        roughness=rng.uniform(0.02, 0.25, count) * (rng.random(count) < 0.4),
        repetitive=rng.random(count) < 0.15,
        surfaces=surfaces,
        centres=reflect(centres, size),
        radii=np.exp(rng.uniform(np.log(0.01), np.log(0.1), num_clusters)) * size.max(),
    )

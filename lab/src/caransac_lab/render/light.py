"""Light and shadow of a clear day, computed once per surface and stored in its texture."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac._support.computed_once import computed_once
from caransac.geometry import Array, Floats
from caransac_lab.render.materials import FINE_TEXEL, Material
from caransac_lab.render.surfaces import Face, interpolate, make_pyramid

SUN = np.array([-0.50, -0.52, 0.69])  # direction towards the sun
SUN_RADIUS = 0.012  # radius of the sun divided by its distance, which gives shadows soft edges
SUN_COLOUR = np.array([3.4, 3.0, 2.45])
SKY_COLOUR = np.array([0.50, 0.64, 0.90])
BOUNCED_COLOUR = np.array([0.13, 0.115, 0.095])  # light from everything except the sky
SUN_RAYS, SKY_RAYS = 4, 40
SUN_STEP, SKY_STEP = 0.035, 0.2  # metres between two points at which sunlight and skylight are computed
EXPOSURE = 0.80
CONTRAST = 0.6  # contrast of the camera's curve: 0 for a plain gamma of 2.2, 1 for a steep one


@dataclass(frozen=True, eq=False)
class Surface:
    """A rectangle of some material that receives light.

    Attributes:
        corner: (3,) one corner in the world, in metres.
        axes: (2, 3) unit vectors of its two sides; the normal is their cross product.
        lengths: (2,) lengths of the two sides in metres.
        material: material of the surface.
    """

    corner: Array
    axes: Array
    lengths: Array
    material: Material

    @property
    @computed_once
    def normal(self) -> Array:
        """Outward unit normal (3,)."""
        return np.cross(self.axes[0], self.axes[1])


def illuminate(rng: np.random.Generator, surfaces: Sequence[Surface]) -> list[Face]:
    """Light the surfaces by the sun, the sky and each other. Return them as a camera sees them."""
    suns = SUN / np.linalg.norm(SUN) + SUN_RADIUS * rng.uniform(-1, 1, (SUN_RAYS, 3))
    sky = rng.standard_normal((SKY_RAYS, 3))
    sky /= np.linalg.norm(sky, axis=1, keepdims=True)
    return [_lit_face(surface, surfaces, suns, sky) for surface in surfaces]


def _lit_face(surface: Surface, surfaces: Sequence[Surface], suns: Array, sky: Array) -> Face:
    """Return one surface with its light."""
    facing_sun = suns[suns @ surface.normal > 0]
    sunny = _mean_visibility(surface, surfaces, facing_sun, np.ones(len(facing_sun)), SUN_STEP)
    above = sky[sky @ surface.normal > 0]
    open_sky = _mean_visibility(surface, surfaces, above, (above @ surface.normal) * (above[:, 2] > 0), SKY_STEP)
    open_sky /= max(float((above @ surface.normal).sum()), 1e-9)
    sunny *= _facing(surface, suns.mean(axis=0)) / max(len(facing_sun), 1)
    light = np.stack([sunny, open_sky, 1 - open_sky], axis=-1) @ np.stack([SUN_COLOUR, SKY_COLOUR, BOUNCED_COLOUR])
    exposed = (1 - np.exp(-EXPOSURE * surface.material.albedo * light)) ** (1 / 2.2)
    texture = _soften(exposed * exposed * (3 - 2 * exposed) * CONTRAST + exposed * (1 - CONTRAST)).astype(np.float32)
    colours = np.array([[0.0] * 3, [255.0] * 3])
    return Face(surface.corner, surface.axes, surface.lengths, make_pyramid(texture), colours, FINE_TEXEL)


def _mean_visibility(
    surface: Surface, surfaces: Sequence[Surface], directions: Array, weights: Array, step: float
) -> Floats:
    """Sum the weights (d,) of the unobstructed directions (d, 3), at every texel of a surface."""
    counts = np.ceil(surface.lengths / step).astype(int) + 2
    first, second = np.indices(counts.tolist()).reshape(2, -1) * step
    places = surface.corner + first[:, None] * surface.axes[0] + second[:, None] * surface.axes[1]
    places = (places + 2e-3 * surface.normal).astype(np.float32)
    total = np.zeros(len(places), np.float32)
    before = [other for other in surfaces if _reaches_before(other, surface)]
    for direction, weight in zip(directions, weights, strict=True):
        if weight > 0:
            total += weight * ~_hidden(places, direction, before)
    shape = surface.material.relief.shape
    texels = np.indices(shape, np.float32).reshape(2, -1).T * np.float32(FINE_TEXEL / step) + np.float32(0.5)
    texels = np.minimum(texels, np.float32(counts - 0.5))  # a texture is slightly larger than its surface
    return interpolate(total.reshape(*counts), texels).reshape(shape)


def _reaches_before(other: Surface, surface: Surface) -> bool:
    """Return True if a corner of another surface is in front of this one, so that it may block light."""
    sides = other.lengths[:, None] * other.axes
    corners = other.corner + np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ sides
    return bool(((corners - surface.corner) @ surface.normal).max() > 1e-3)


def _hidden(places: Floats, direction: Array, surfaces: Sequence[Surface]) -> NDArray[np.bool_]:
    """Return which places (n, 3) have a surface in front of them in a direction (3,).

    The ray from p in direction d meets a surface at the coordinates (a, b) in its axes:
    ``p + s d = corner + A^T (a, b)``.
    """
    hidden = np.zeros(len(places), bool)
    systems = np.array([[*surface.axes, -direction] for surface in surfaces]).reshape(-1, 3, 3).transpose(0, 2, 1)
    parallel = np.abs(np.linalg.det(systems)) < 1e-6
    inverses = np.linalg.inv(np.where(parallel[:, None, None], np.eye(3), systems)).astype(np.float32)
    for surface, inverse in itertools.compress(zip(surfaces, inverses, strict=True), ~parallel):
        along, across, distance = inverse @ places.T - (inverse @ surface.corner.astype(np.float32))[:, None]
        met = (distance > 0) & (along > 0) & (along < surface.lengths[0])
        hidden |= met & (across > 0) & (across < surface.lengths[1])
    return hidden


def _facing(surface: Surface, sun: Array) -> Array:
    """Return the cosine (n, m) between the sun and the normal of the relief, zero if it faces away."""
    slopes = np.gradient(surface.material.relief.astype(float), FINE_TEXEL)
    cosine = surface.normal @ sun - sum(slope * (axis @ sun) for slope, axis in zip(slopes, surface.axes, strict=True))
    return np.asarray(np.clip(cosine / np.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2), 0, 1))


def _soften(levels: Array) -> Array:
    """Remove wavelengths near two texels from levels (n, m, 3). Every view would show them with aliasing."""
    for axis in (0, 1):
        last = levels.shape[axis] - 1
        before, after = (np.take(levels, np.clip(np.arange(last + 1) + step, 0, last), axis) for step in (-1, 1))
        levels = (before + 2 * levels + after) / 4
    return levels

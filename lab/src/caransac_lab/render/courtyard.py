"""The scene that looks like photographs: a courtyard on a sunny day, with sensor noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac.geometry import Array
from caransac_lab.render.boxes import box_sides
from caransac_lab.render.light import Surface, illuminate
from caransac_lab.render.materials import (
    MakeMaterial,
    Material,
    fractal,
    make_brick,
    make_leaves,
    make_paving,
    make_plaster,
    make_stone,
    make_tiles,
    make_wood,
    with_opening,
)
from caransac_lab.render.surfaces import Face, Image, make_pyramid

OCHRE, GREY, PINK = (0.62, 0.47, 0.26), (0.50, 0.48, 0.44), (0.56, 0.38, 0.31)
SKY_TEXEL = 0.25  # metres
NOISE_LEVELS = 2.0  # standard deviation of the noise of a grey pixel, of 255 levels
VIGNETTING = 0.18  # share of the light that the corners of an image lose
X, Y, Z = np.eye(3)


def make_courtyard(seed: int = 0) -> list[Face]:
    """Create paving between three walls, with hedges, planters, crates and a bench; houses behind it, and the sky."""
    rng = np.random.default_rng([seed, 2])
    surfaces = [_surface(rng, [-7, -6.5, 0], X, Y, (14, 11.5), make_paving), *_make_walls(rng), *_make_house(rng)]
    for place, size, turn, make in (
        ((0.9, 3.6, 0.0), (1.9, 0.8, 0.16), 0.0, make_stone),  # steps to the door
        ((0.9, 3.75, 0.16), (1.5, 0.5, 0.16), 0.0, make_stone),
        ((-2.1, 2.2, 0.0), (0.75, 0.75, 0.55), 0.25, make_stone),  # planters with plants
        ((-2.1, 2.2, 0.55), (0.62, 0.62, 0.75), 0.25, make_leaves),
        ((2.75, 2.1, 0.0), (0.75, 0.75, 0.55), -0.2, make_stone),
        ((2.75, 2.1, 0.55), (0.62, 0.62, 0.6), -0.2, make_leaves),
        ((-3.45, 0.9, 0.0), (0.6, 2.6, 0.95), 0.0, make_leaves),  # a hedge along the wall
        ((-0.75, 0.6, 0.40), (1.7, 0.45, 0.07), 0.42, make_wood),  # a bench
        ((-1.35, 0.33, 0.0), (0.1, 0.4, 0.40), 0.42, make_stone),
        ((-0.15, 0.87, 0.0), (0.1, 0.4, 0.40), 0.42, make_stone),
        ((1.75, -0.35, 0.0), (0.7, 0.55, 0.45), 0.6, make_wood),  # crates
        ((1.80, -0.32, 0.45), (0.5, 0.45, 0.38), 0.25, make_wood),
        ((2.55, 0.25, 0.0), (0.6, 0.55, 0.5), -0.3, make_wood),
        ((-2.2, -1.4, 0.0), (0.55, 0.55, 0.18), 0.3, make_stone),  # a pedestal
        ((-2.2, -1.4, 0.18), (0.38, 0.38, 0.75), 0.3, make_stone),
        ((-2.2, -1.4, 0.93), (0.5, 0.5, 0.12), 0.3, make_stone),
    ):
        surfaces += _make_block(rng, place, size, turn, make)
    return [*illuminate(rng, surfaces), _make_sky(rng)]


def _make_walls(rng: np.random.Generator) -> list[Surface]:
    """Create the back wall with a door and windows, one wall on each side, and the slabs on top of them."""
    back, left, right = (8.4, 3.7), (9.5, 4.3), (9.5, 2.7)
    brick = make_brick(rng, back)
    brick = with_opening(brick, (4.5, 0.32), (1.1, 2.1), make_wood(rng, (2.3, 1.3)).turned())
    for start in (0.9, 2.7, 6.5):
        brick = with_opening(brick, (start, 1.15), (0.95, 1.45))
    plaster = make_plaster(rng, left, colour=OCHRE)
    for start in (4.4, 6.3, 8.0):
        plaster = with_opening(plaster, (9.5 - start - 0.9, 1.3), (0.9, 1.5))
    stones = make_brick(rng, right)
    ivy, spread = make_leaves(rng, right), fractal(rng, stones.relief.shape, 2.5)
    grown = (spread + 1.1 * np.linspace(1.2, -0.6, spread.shape[1]) + 0.25 * fractal(rng, spread.shape, 0.2)) > 0.55
    stones = Material(
        np.where(grown[..., None], ivy.albedo, stones.albedo), stones.relief + grown * (0.03 + ivy.relief)
    )
    walls = [
        Surface(np.array([-4.2, 4.0, 0.0]), np.stack([X, Z]), np.array(back), brick),
        Surface(np.array([-4.2, -5.5, 0.0]), np.stack([Y, Z]), np.array(left), plaster),
        Surface(np.array([4.2, 4.0, 0.0]), np.stack([-Y, Z]), np.array(right), stones),
    ]
    for place, size in (((0, 4.2, 3.68), (8.7, 0.45, 0.14)), ((4.4, -0.7, 2.68), (0.45, 9.4, 0.12))):
        walls += _make_block(rng, place, size, 0.0, make_stone)
    for start in (0.9, 2.7, 6.5):  # window sills
        walls += _make_block(rng, (start + 0.475 - 4.2, 3.95, 1.02), (1.25, 0.22, 0.07), 0.0, make_stone)
    return walls


def _make_house(rng: np.random.Generator) -> list[Surface]:
    """Create two houses behind the courtyard."""
    near, far = (7.5, 6.4), (9.0, 5.4)
    slope = np.array([0.0, np.cos(0.6), np.sin(0.6)])  # slope of the roofs
    front = make_plaster(rng, near, colour=PINK)
    for start in (0.8, 2.7, 4.6, 6.1):
        front = with_opening(front, (start, 4.3), (0.95, 1.4))
    grey = make_plaster(rng, far, colour=GREY)
    for start in (1.2, 3.4, 5.6, 7.2):
        grey = with_opening(grey, (start, 3.6), (0.9, 1.2))
    return [
        Surface(np.array([0.6, 7.5, 0.0]), np.stack([X, Z]), np.array(near), front),
        Surface(np.array([-9.6, 10.0, 0.0]), np.stack([X, Z]), np.array(far), grey),
        _surface(rng, [0.35, 7.2, 6.2], X, slope, (8.0, 3.2), make_tiles),
        _surface(rng, [-9.8, 9.7, 5.2], X, slope, (9.4, 2.6), make_tiles),
    ]


def _make_block(
    rng: np.random.Generator, place: ArrayLike, size: ArrayLike, turn: float, make: MakeMaterial
) -> list[Surface]:
    """Create the sides and the top of a block of one material."""
    sides = box_sides(np.asarray(place, float), np.asarray(size, float), turn)
    return [_surface(rng, corner, side1, side2, lengths, make) for corner, side1, side2, lengths in sides]


def _surface(
    rng: np.random.Generator,
    corner: ArrayLike,
    side1: Array,
    side2: Array,
    lengths: tuple[float, float],
    make: MakeMaterial,
) -> Surface:
    return Surface(np.asarray(corner, float), np.stack([side1, side2]), np.array(lengths), make(rng, lengths))


def _make_sky(rng: np.random.Generator) -> Face:
    """Create a blue sky with clouds, paler near the horizon, so far away that it is the same in all views."""
    shape = 1600, 480
    up = np.linspace(0, 1, shape[1])[:, None]
    blue = (1 - up**0.6) * np.array([0.80, 0.87, 0.93]) + up**0.6 * np.array([0.25, 0.47, 0.80])
    clouds = np.clip(0.45 * fractal(rng, shape, 2.0, 2.0, 1.7) + 0.1, 0, 1)[..., None]
    texture = ((1 - clouds) * blue + clouds * np.array([0.97, 0.97, 0.98])).astype(np.float32)
    lengths = np.array([SKY_TEXEL * (side - 1) for side in shape])
    corner = np.array([-lengths[0] / 2, 120.0, -3.0])
    return Face(corner, np.stack([X, Z]), lengths, make_pyramid(texture), np.array([[0.0] * 3, [255.0] * 3]), SKY_TEXEL)


def expose(rng: np.random.Generator, image: Image) -> Image:
    """Add the effects of a camera to an image (height, width, 3): darker corners and sensor noise."""
    height, width = image.shape[:2]
    across, down = np.linspace(-1, 1, width), np.linspace(-1, 1, height)[:, None]
    light = 1 - VIGNETTING / 2 * (across**2 + down**2)
    noise = rng.normal(0, NOISE_LEVELS, image.shape) + rng.normal(0, NOISE_LEVELS / 2, (height, width, 1))
    return np.clip(np.rint(image * light[..., None] + noise), 0, 255).astype(np.uint8)

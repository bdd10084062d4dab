"""Materials: colours and relief of brick, paving, plaster, wood, leaves and windows.

A material covers a rectangle with sides of given lengths in metres, the first along the courses, the second across
them. On a wall the second side points up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac.geometry import Array, Floats
from caransac_lab.render.surfaces import texture_shape

FINE_TEXEL = 0.008  # metres; resolution of the materials' textures
BRICK_REDS = ((0.42, 0.17, 0.11), (0.50, 0.22, 0.14), (0.36, 0.13, 0.10), (0.46, 0.25, 0.18), (0.28, 0.12, 0.10))
STONE_GREYS = ((0.42, 0.39, 0.34), (0.36, 0.34, 0.31), (0.47, 0.43, 0.36), (0.32, 0.31, 0.30))
WOOD_BROWNS = ((0.30, 0.18, 0.09), (0.36, 0.22, 0.11), (0.26, 0.15, 0.08))
LEAF_GREENS = ((0.10, 0.19, 0.035), (0.14, 0.25, 0.05), (0.07, 0.14, 0.03), (0.19, 0.27, 0.06))
LEAF_LENGTH = 0.055  # metres
WHITE_PAINT, GLASS = (0.62, 0.61, 0.57), (0.05, 0.07, 0.09)


@dataclass(frozen=True, eq=False)
class Material:
    """A surface without light, with samples `FINE_TEXEL` metres apart.

    Attributes:
        albedo: (n, m, 3) reflected shares of red, green and blue light.
        relief: (n, m) height above the surface in metres.
    """

    albedo: Floats
    relief: Floats

    def turned(self) -> Material:
        """Return the material with its two sides exchanged."""
        return Material(self.albedo.transpose(1, 0, 2), self.relief.T)


MakeMaterial = Callable[[np.random.Generator, tuple[float, float]], Material]


def make_masonry(
    rng: np.random.Generator,
    lengths: tuple[float, float],
    *,
    unit: tuple[float, float],
    joint: float,
    palette: ArrayLike,
    mortar: ArrayLike,
    depth: float,
    grain: float = 1.0,
) -> Material:
    """Create stones in courses, with every second course shifted.

    Args:
        rng: source of random numbers.
        lengths: sides of the rectangle in metres.
        unit: length and height of a stone in metres, including its joint.
        joint: width of the joints in metres.
        palette: (k, 3) albedos of the stones.
        mortar: (3,) albedo of the joints.
        depth: height of the stones above the joints in metres.
        grain: ratio of length to height of the patterns on a stone.
    """
    shape = texture_shape(lengths, FINE_TEXEL)
    fine, coarse = fractal(rng, shape, 0.15, grain), fractal(rng, shape, 2.0)
    along, across = (FINE_TEXEL * (axis + np.float32(0.5)) for axis in np.indices(shape, np.float32))
    across = across + 0.002 * fine  # slightly uneven edges
    course = (across / unit[1]).astype(np.int32)
    along = along + 0.002 * fine + unit[0] * rng.uniform(0.45, 0.55, course.max() + 1)[course] * (course % 2) + unit[0]
    stone = (along / unit[0]).astype(np.int32)
    edges = [along - stone * unit[0], across - course * unit[1]]
    margin = np.min([np.minimum(edge, length - edge) for edge, length in zip(edges, unit, strict=True)], axis=0)
    inside = np.clip((margin - joint / 2) / 0.008, 0, 1)[..., None]
    one = stone % 101, course % 89
    colours = np.asarray(palette)[rng.integers(len(np.asarray(palette)), size=(101, 89))[one]]
    brightness = rng.uniform(0.85, 1.15, (101, 89))[one] + 0.10 * fine + 0.11 * coarse
    albedo = (
        inside * colours * brightness[..., None] + (1 - inside) * mortar * (1 + 0.1 * fine + 0.1 * coarse)[..., None]
    )
    return _material(albedo, depth * inside[..., 0] + 0.0009 * fine)


make_brick = partial(
    make_masonry, unit=(0.25, 0.085), joint=0.014, palette=BRICK_REDS, mortar=(0.45, 0.42, 0.37), depth=0.005
)
make_paving = partial(
    make_masonry, unit=(0.62, 0.42), joint=0.016, palette=STONE_GREYS, mortar=(0.14, 0.15, 0.09), depth=0.006
)
make_stone = partial(
    make_masonry, unit=(0.9, 0.45), joint=0.008, palette=STONE_GREYS[:3], mortar=(0.25, 0.24, 0.21), depth=0.004
)
make_tiles = partial(
    make_masonry, unit=(0.22, 0.3), joint=0.02, palette=BRICK_REDS[:4], mortar=(0.10, 0.06, 0.05), depth=0.02
)
make_wood = partial(
    make_masonry, unit=(2.4, 0.11), joint=0.008, palette=WOOD_BROWNS, mortar=(0.04, 0.03, 0.02), depth=0.004, grain=12.0
)


def make_plaster(rng: np.random.Generator, lengths: tuple[float, float], *, colour: ArrayLike) -> Material:
    """Create plaster of a colour, dirty near the ground, with bricks visible in a few places."""
    bricks = make_brick(rng, lengths)
    shape = bricks.relief.shape
    fine, coarse = fractal(rng, shape, 0.2), fractal(rng, shape, 1.0)
    broad = fractal(rng, shape, 2.5, smoothness=1.7)
    height = FINE_TEXEL * np.arange(shape[1])
    dirt = 0.45 * np.exp(-height / 0.35) * (1 + 0.5 * coarse)
    brightness = 1 + 0.04 * fine + 0.06 * coarse + 0.08 * broad - dirt
    off = np.clip(15 * (broad + 0.05 * coarse - 1.75), 0, 1)
    albedo = (1 - off[..., None]) * np.asarray(colour) * brightness[..., None] + off[..., None] * bricks.albedo
    return _material(albedo, (1 - off) * (0.012 + 0.0008 * fine) + off * bricks.relief)


def make_leaves(rng: np.random.Generator, lengths: tuple[float, float]) -> Material:
    """Create overlapping leaves; the upper ones are brighter."""
    shape = texture_shape(lengths, FINE_TEXEL)
    albedo = np.full((*shape, 3), (0.015, 0.025, 0.008), np.float32)
    relief = np.zeros(shape, np.float32)
    kinds = [_make_leaf(rng) for _ in range(60)]
    side = len(kinds[0][0])
    count = int(4 * shape[0] * shape[1] * FINE_TEXEL**2 / LEAF_LENGTH**2)
    for number, (row, column) in enumerate(rng.integers(0, np.maximum(np.array(shape) - side, 1), (count, 2))):
        leaf, colours = kinds[rng.integers(len(kinds))]
        window = slice(row, row + side), slice(column, column + side)
        albedo[window][leaf] = (0.35 + 0.75 * number / count) * colours[leaf]
        relief[window][leaf] = 0.02 * number / count
    return _material(albedo, relief)


def _make_leaf(rng: np.random.Generator) -> tuple[NDArray[np.bool_], Array]:
    """Create a leaf of random size and direction: a mask of its samples (k, k), and albedos (k, k, 3)."""
    radius = int(np.ceil(LEAF_LENGTH / FINE_TEXEL / 2))
    x, y = FINE_TEXEL * (np.indices((2 * radius + 1,) * 2) - radius) / (LEAF_LENGTH / 2 * rng.uniform(0.7, 1))
    angle = rng.uniform(0, 2 * np.pi)
    along, across = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    brightness = rng.uniform(0.8, 1.2) * np.where(np.abs(across) < 0.08, 1.25, 1 - 0.2 * across)  # a vein in the middle
    return np.abs(across) < 0.55 * (1 - along**2), brightness[..., None] * LEAF_GREENS[rng.integers(len(LEAF_GREENS))]


def with_opening(
    wall: Material, corner: tuple[float, float], size: tuple[float, float], filling: Material | None = None
) -> Material:
    """Add a window in a stone frame, or a door of some filling, to a wall.

    Args:
        wall: the wall.
        corner: distance in metres from the corner of the wall to that of the opening.
        size: width and height of the opening in metres.
        filling: material in the opening, at least as large; None for panes of glass.
    """
    albedo, relief = wall.albedo.copy(), wall.relief.copy()

    def area(inset: float) -> tuple[slice, slice]:
        first, second = (
            slice(round((start + inset) / FINE_TEXEL), round((start + length - inset) / FINE_TEXEL))
            for start, length in zip(corner, size, strict=True)
        )
        return first, second

    albedo[area(-0.12)], relief[area(-0.12)] = np.array(STONE_GREYS[2]) * 1.1, 0.015
    inner = area(0.0)
    shape = relief[inner].shape
    if filling is not None:
        albedo[inner], relief[inner] = (
            part[: shape[0], : shape[1]] for part in (filling.albedo, filling.relief - 0.05)
        )
        return Material(albedo, relief)
    albedo[inner], relief[inner] = WHITE_PAINT, -0.03
    across, up = (np.linspace(0, 1, count) for count in shape)
    panes = (np.abs(across[:, None] * 2 % 1 - 0.5) < 0.40) & (np.abs(up * 3 % 1 - 0.5) < 0.43)
    reflection = 1 + 2.2 * np.clip(up + 0.25 * across[:, None] - 0.45, 0, 1)  # reflection of the sky in the upper panes
    albedo[inner][panes] = (reflection[..., None] * GLASS)[panes]
    relief[inner][panes] = -0.045
    return Material(albedo, relief)


def fractal(
    rng: np.random.Generator, shape: tuple[int, int], longest: float, stretch: float = 1.0, smoothness: float = 1.0
) -> Floats:
    """Create noise (n, m) of mean 0 and deviation 1.

    Args:
        rng: source of random numbers.
        shape: number of samples, `FINE_TEXEL` apart.
        longest: longest wavelength in metres.
        stretch: ratio of the lengths of the patterns along the first and the second axis.
        smoothness: 1 for equal strength in every octave, larger values for weaker fine octaves.
    """
    frequency = np.hypot(stretch * np.fft.fftfreq(shape[0], FINE_TEXEL)[:, None], np.fft.rfftfreq(shape[1], FINE_TEXEL))
    band = np.maximum(frequency, 1 / longest) ** -smoothness
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape, np.float32)) * band, shape)
    return np.asarray((noise - noise.mean()) / noise.std(), np.float32)


def _material(albedo: Array | Floats, relief: Array | Floats) -> Material:
    return Material(np.clip(albedo, 0.01, 0.9).astype(np.float32), relief.astype(np.float32))

"""The plain scene: boxes, a floor and two walls with noise textures, rich in repeatable features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac.geometry import Array, Floats
from caransac_lab.render.surfaces import Face, make_noise, make_pyramid, texture_shape


def make_scene(seed: int = 0, num_boxes: int = 10) -> list[Face]:
    """Create a floor, two walls in a corner and boxes in front of them, of random sizes, positions and textures."""
    rng = np.random.default_rng([seed, 0])
    x, y, z = np.eye(3)
    slant = np.radians(25)  # slanted walls have varied depths
    left, right = np.cos(slant) * x + np.sin(slant) * y, np.cos(slant) * x - np.sin(slant) * y
    edge = np.array([0, 3.2, 0])  # a point at which walls and floor meet
    faces = [
        make_face(rng, [-7.5, -5, 0], x, y, (15, 9)),
        make_face(rng, edge - 8 * left, left, z, (8, 5.5)),
        make_face(rng, edge, right, z, (8, 5.5)),
    ]
    for index in range(num_boxes):  # in two rows, lower ones in front
        row, column = index % 2, index // 2
        place = [(column - (num_boxes // 2 - 1) / 2) * 1.3 + rng.uniform(-0.25, 0.25), row * 1.7 + rng.uniform(-0.9, 0)]
        size = rng.uniform(0.5, 1.0, 3) * [1, 1, 1 + 1.3 * row]
        faces += [make_face(rng, *side) for side in box_sides(np.array([*place, 0.0]), size, rng.uniform(-0.7, 0.7))]
    return faces


def box_sides(place: Array, size: Array, turn: float) -> list[tuple[Array, Array, Array, tuple[float, float]]]:
    """Return the four sides and the top of an upright box: for each, a corner, two directions and two lengths.

    Args:
        place: (3,) centre of the base.
        size: (3,) width, depth and height.
        turn: rotation about the vertical, in radians.
    """
    x, y, z = np.array([np.cos(turn), np.sin(turn), 0]), np.array([-np.sin(turn), np.cos(turn), 0]), np.eye(3)[2]
    width, depth, height = size
    front = place - width / 2 * x - depth / 2 * y
    back = place + width / 2 * x + depth / 2 * y
    return [
        (front, x, z, (width, height)),
        (front + width * x, y, z, (depth, height)),
        (back, -x, z, (width, height)),
        (back - width * x, -y, z, (depth, height)),
        (front + height * z, x, y, (width, depth)),
    ]


def make_face(
    rng: np.random.Generator, corner: ArrayLike, side1: Array, side2: Array, lengths: tuple[float, float]
) -> Face:
    """Create a rectangle with a random texture, lit by a lamp from above left."""
    lamp = np.array([-0.4, -0.6, 0.7])
    brightness = 0.75 + 0.25 * float(np.cross(side1, side2) @ lamp)
    paint = rng.uniform(130, 220, 3)
    colours = brightness * np.stack([0.3 * paint, 0.4 * paint + 150])
    texture = _make_texture(rng, lengths)
    return Face(np.asarray(corner, float), np.stack([side1, side2]), np.array(lengths), texture, colours)


def _make_texture(rng: np.random.Generator, lengths: tuple[float, float]) -> tuple[Floats, ...]:
    """Create noise for a rectangle with sides of these lengths in metres, and its pyramid."""
    return make_pyramid(make_noise(rng, texture_shape(lengths)))

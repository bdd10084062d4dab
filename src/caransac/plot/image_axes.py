"""What pictures of two views share: images or frames of them on axes, colours of probabilities, lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array
from caransac.geometry import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_max_lines(max_lines: int) -> None:
    """A limit of lines that lets none be drawn is a mistake."""
    if max_lines < 1:
        raise ValueError(f"max_lines must be at least 1, not {max_lines}")


def as_probabilities(values: ArrayLike, count: int) -> Array:
    """Probabilities or booleans, one per match, as numbers (n,) from 0 to 1."""
    probabilities = as_array(values, "probabilities").astype(float)
    if probabilities.shape != (count,):
        raise ValueError(f"probabilities must have shape ({count},), one per match, got {probabilities.shape}")
    return np.asarray(np.clip(probabilities, 0, 1))


def colours_of(probabilities: Array) -> Array:
    """RGBA (n, 4): from faint red at 0 to solid green at 1."""
    from matplotlib import colormaps

    colours = colormaps["RdYlGn"](probabilities)
    colours[:, 3] = 0.15 + 0.55 * probabilities
    return np.asarray(colours)


def size_of(image: ArrayLike | None, size: tuple[int, int] | None, points: Array) -> tuple[int, int]:
    """Width and height of an image, or else as given, or else so that all points are inside."""
    if image is not None:
        height, width = np.shape(image)[:2]
        return width, height
    if size is not None:
        return size
    right, bottom = np.ceil(points.max(axis=0, initial=1)).astype(int) + 1
    return int(right), int(bottom)


def draw_image(axes: Axes, image: ArrayLike | None, size: tuple[int, int], left: int = 0) -> None:
    """Draw an image, or a frame of its size, so that the centre of its top-left pixel is (left, 0)."""
    width, height = size
    extent = (left - 0.5, left + width - 0.5, height - 0.5, -0.5)
    if image is not None:
        axes.imshow(as_array(image, "image"), cmap="gray", vmin=0, vmax=255, extent=extent, alpha=0.7)
    x1, x2, y2, y1 = extent
    axes.plot([x1, x2, x2, x1, x1], [y1, y1, y2, y2, y1], color="0.4", lw=1)


def draw_lines(axes: Axes, lines: Array, colours: Array) -> None:
    """Draw lines (n, 3), ``a x + b y + c = 0``, in colours (n, 4)."""
    for (a, b, c), colour in zip(lines, colours, strict=True):
        if np.hypot(a, b) > 0:  # the line of an epipole is none
            foot = -c * np.array([a, b]) / (a * a + b * b)
            axes.axline(foot, foot + np.array([b, -a]) / np.hypot(a, b), color=colour, lw=0.8)

"""Shared parts of two-view pictures: images or empty frames, colours of probabilities, lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, as_reals, as_size, check_whole
from caransac.geometry import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_max_lines(max_lines: int) -> None:
    """Raise a ValueError if a maximum number of lines is below one."""
    check_whole(max_lines, "max_lines", 1)


def as_probabilities(values: ArrayLike, count: int) -> Array:
    """Convert probabilities or booleans, one per match, to numbers (n,) from 0 to 1."""
    given = as_array(values, "probabilities")
    probabilities = as_reals(given.astype(float) if given.dtype == bool else given, "probabilities")
    if probabilities.shape != (count,):
        raise ValueError(f"probabilities must have shape ({count},), one per match, got {probabilities.shape}")
    return np.asarray(np.clip(probabilities, 0, 1))


def colours_of(probabilities: Array) -> Array:
    """Return RGBA colours (n, 4): from faint red at 0 to solid green at 1."""
    from matplotlib import colormaps

    colours = colormaps["RdYlGn"](probabilities)
    colours[:, 3] = 0.15 + 0.55 * probabilities
    return np.asarray(colours)


def add_legend(axes: Axes, ax: object, lines: str = "") -> None:
    """Explain colours and lines of matches below a new figure. `ax`: the caller's axes, if any; they get no legend."""
    if ax is not None:
        return
    from matplotlib.lines import Line2D

    colours = colours_of(np.array([1.0, 0.5, 0.0]))
    colours[:, 3] = 1.0
    names = ("probably right", "unsure", "probably wrong")
    marks = [Line2D([], [], color=c, marker="o", ls="", label=n) for c, n in zip(colours, names, strict=True)]
    marks += [Line2D([], [], color=colours[0], label=lines)] if lines else []
    axes.figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)


def size_of(image: ArrayLike | None, size: tuple[int, int] | None, points: Array, number: int) -> tuple[int, int]:
    """Return the width and height of an image, else the given size, else a size around all points. Check both."""
    if image is not None:
        pixels = as_array(image, f"image{number}")
        if pixels.ndim not in (2, 3) or not pixels.size or pixels.dtype.kind not in "fiub":
            raise ValueError(f"image{number} must be (H, W) or (H, W, 3), got {pixels.shape} {pixels.dtype}")
        height, width = pixels.shape[:2]
        return width, height
    if size is not None:
        return as_size(size, f"size{number}")
    right, bottom = np.ceil(points.max(axis=0, initial=1)).astype(int) + 1
    return int(right), int(bottom)


def draw_image(axes: Axes, image: ArrayLike | None, size: tuple[int, int], left: int = 0) -> None:
    """Draw an image or an empty frame, with the centre of its top-left pixel at (left, 0)."""
    width, height = size
    extent = (left - 0.5, left + width - 0.5, height - 0.5, -0.5)
    if image is not None:
        axes.imshow(as_array(image, "image"), cmap="gray", vmin=0, vmax=255, extent=extent, alpha=0.7)
    x1, x2, y2, y1 = extent
    axes.plot([x1, x2, x2, x1, x1], [y1, y1, y2, y2, y1], color="0.4", lw=1)


def draw_lines(axes: Axes, lines: Array, colours: Array) -> None:
    """Draw lines (n, 3), ``a x + b y + c = 0``, in colours (n, 4)."""
    for (a, b, c), colour in zip(lines, colours, strict=True):
        if np.hypot(a, b) > 0:  # the epipole itself has no epipolar line
            foot = -c * np.array([a, b]) / (a * a + b * b)
            axes.axline(foot, foot + np.array([b, -a]) / np.hypot(a, b), color=colour, lw=0.8)

"""Pictures of two-view geometry with matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike


def draw_matches(
    path: str | Path,
    points1: ArrayLike,
    points2: ArrayLike,
    inliers: ArrayLike,
    *,
    size: tuple[int, int],
    title: str = "",
) -> Path:
    """Save a picture of matches between two images side by side, inliers green over outliers red.

    Args:
        path: where to write it; the ending chooses the format.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        inliers: (n,) bool.
        size: (width, height) of the images in pixels.
        title: a line above the picture.

    Returns:
        The path.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'caransac[bench]'") from error

    width, height = size
    gap = 0.03 * width
    lines = np.stack([np.asarray(points1, float), np.asarray(points2, float) + np.array([width + gap, 0])], axis=1)
    figure = Figure(figsize=(12, 12 * height / (2 * width + gap) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for mask, colour, alpha in (
        (~np.asarray(inliers, bool), "tab:red", 0.15),
        (np.asarray(inliers, bool), "tab:green", 0.5),
    ):
        axes.add_collection(LineCollection(list(lines[mask]), colors=colour, alpha=alpha, linewidths=0.8))
    for left in (0, width + gap):
        axes.plot([left, left + width, left + width, left, left], [0, 0, height, height, 0], color="0.4", lw=1)
    axes.set(xlim=(-gap, 2 * width + 2 * gap), ylim=(height + gap, -gap), aspect="equal", title=title)
    axes.set_axis_off()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    return path

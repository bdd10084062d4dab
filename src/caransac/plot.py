"""Pictures of two-view geometry with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from caransac.files import replacing
from caransac.geometry import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    width, height = size
    gap = 0.03 * width
    figure = new_figure((12, 12 * height / (2 * width + gap) + 0.5))
    from matplotlib.collections import LineCollection

    lines = np.stack([np.asarray(points1, float), np.asarray(points2, float) + np.array([width + gap, 0])], axis=1)
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
    return save(figure, path)


def draw_training(path: str | Path, log: Sequence[Mapping[str, float]], panels: Mapping[str, Sequence[str]]) -> Path:
    """Save the curves of a training run over optimiser steps, in training and validation.

    Args:
        path: where to write it.
        log: one row a validation, as the trainer logs it.
        panels: figures by the title of the panel they belong to.

    Returns:
        The path.
    """
    figure = new_figure((12, 4))
    steps = [row["step"] for row in log]
    for number, (title, names) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        for name in (f"{part}_{name}" for name in names for part in ("train", "val")):
            axes.plot(steps, [row.get(name, np.nan) for row in log], label=name.replace("_", " "), marker=".")
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        axes.legend()
    return save(figure, path)


def draw_reliability(path: str | Path, curves: Mapping[str, Array]) -> Path:
    """Save a reliability diagram: how often what was said with some probability came true.

    Args:
        path: where to write it.
        curves: for each curve's label, its `metrics.calibration_bins`.

    Returns:
        The path.
    """
    figure = new_figure((5, 5))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    for label, bins in curves.items():
        (line,) = axes.plot(bins[:, 0], bins[:, 1], lw=1, alpha=0.6)
        share = bins[:, 2] / bins[:, 2].sum()  # bins of a few cases say little, and look it
        axes.scatter(bins[:, 0], bins[:, 1], s=8 + 250 * share, color=line.get_color(), label=label)
    axes.set(
        xlabel="predicted probability",
        ylabel="observed frequency",
        xlim=(-0.05, 1.05),
        ylim=(-0.05, 1.05),
        aspect="equal",
    )
    axes.grid(alpha=0.3)
    axes.legend()
    return save(figure, path)


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of a size in inches, drawn without a screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'caransac[bench]'") from error

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file, whose ending chooses the format; returns the path."""
    path = Path(path)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=100)
    return path

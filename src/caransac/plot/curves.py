"""Curves of training runs and of calibration, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from caransac._support.arrays import shorten
from caransac.geometry import Array
from caransac.plot.figures import PictureTarget, axes_of, deliver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_training(
    path: PictureTarget | None,
    log: Sequence[Mapping[str, float]],
    panels: Mapping[str, Sequence[str]],
    *,
    ax: Sequence[Axes] | None = None,
) -> Figure:
    """Draw the curves of a training run over optimiser steps, in training and validation.

    Args:
        path: where to write it, or None.
        log: one row per validation, as the trainer logs it.
        panels: figures by the title of the panel they belong to.
        ax: axes to draw on, one for each panel, instead of a new figure.

    Returns:
        The figure.
    """
    drawn = axes_of(ax, (12, 4), (1, len(panels)))[0]
    steps = [row["step"] for row in log]
    for axes, (title, names) in zip(drawn, panels.items(), strict=True):
        for name in (f"{part}_{name}" for name in names for part in ("train", "val")):
            axes.plot(steps, [row.get(name, np.nan) for row in log], label=name.replace("_", " "), marker=".")
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        axes.legend()
    return deliver(drawn[0], path)


def draw_reliability(path: PictureTarget | None, curves: Mapping[str, Array], *, ax: Axes | None = None) -> Figure:
    """Draw a reliability diagram: how often what was said with some probability came true.

    Args:
        path: where to write it, or None.
        curves: for each curve's label, its `metrics.calibration_bins`.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(f"curves must be calibration_bins by their labels, at least one, not {shorten(curves)}")
    axes = axes_of(ax, (5, 5), (1, 1))[0, 0]
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
    return deliver(axes, path)

"""Draw curves of training runs and of calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from caransac import plot
from caransac.geometry import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_training(path: Path, log: Sequence[Mapping[str, float]], panels: Mapping[str, Sequence[str]]) -> None:
    """Draw the training and validation curves of a run over optimiser steps.

    Args:
        path: path of the picture.
        log: one row per validation, from the trainer.
        panels: names of figures by the title of their panel.
    """
    figure = plot.new_figure((12, 4))
    steps = [row["step"] for row in log]
    for axes, (title, names) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for name in (f"{part}_{name}" for name in names for part in ("train", "val")):
            axes.plot(steps, [row.get(name, np.nan) for row in log], label=name.replace("_", " "), marker=".")
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.3)
        axes.legend()
    plot.save(figure, path)


def draw_reliability(curves: Mapping[str, Array]) -> Figure:
    """Draw a reliability diagram: observed frequency against predicted probability.

    Args:
        curves: `metrics.calibration_bins` of each curve, by label.

    Returns:
        The figure.
    """
    figure = plot.new_figure((5, 5))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    for label, bins in curves.items():
        (line,) = axes.plot(bins[:, 0], bins[:, 1], lw=1, alpha=0.6)
        share = bins[:, 2] / bins[:, 2].sum()  # bins with few cases are drawn faintly
        axes.scatter(bins[:, 0], bins[:, 1], s=8 + 250 * share, color=line.get_color(), label=label)
    limits = (-0.05, 1.05)
    axes.set(xlabel="predicted probability", ylabel="observed frequency", xlim=limits, ylim=limits, aspect="equal")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure

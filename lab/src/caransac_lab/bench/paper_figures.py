"""Figures of the paper for the user's own pairs: progression, qualitative results, and a breakdown of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import caransac
from caransac import plot
from caransac.geometry import Array, pose_error_deg
from caransac.options import Options
from caransac.results import RelativePoseResult
from caransac.robust.problems import Essential
from caransac_lab.bench.breakdown import PARTS, parts_ms
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.paper import FIGURES, PRESET
from caransac_lab.bench.protocol import BenchMethod, Job, undistorted
from caransac_lab.datasets import Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RIGHT_DEG = 5.0
LIKELY = 0.5  # minimum probability of a match in the figure of results, as in the paper
NUM_ROWS = 3  # number of pairs in the figure of results
SMALLEST_SHARE = 0.02  # minimum share of the time of a slice of the pie chart
LEARNED = ("side information", "network")  # parts of the time that the paper counts as learned


@dataclass(frozen=True, eq=False)
class Solved:
    """A pair and the answer of a method."""

    pair: Pair
    right: NDArray[np.bool_]
    result: RelativePoseResult

    @property
    def error_deg(self) -> float:
        """Pose error in degrees; 180 without an answer."""
        if self.result.R is None or self.result.t is None:
            return 180.0
        assert self.pair.R is not None and self.pair.t is not None
        return pose_error_deg(self.result.R, self.result.t, self.pair.R, self.pair.t)


def solve(pair: Pair, options: Options) -> Solved:
    """Estimate the pose of a pair of known truth from all its matches, by the public call."""
    pair = undistorted(pair)
    found = caransac.estimate_relative_pose(**pair.arguments(), options=options)
    return Solved(pair, pair.right_matches() > 0, found)


def draw_progression(pairs: Sequence[Pair]) -> Figure:
    """Draw figure 1 for the solved pair with the fewest right matches.

    The upper part shows the matches: green for right, red for wrong, with their probabilities as opacity. The lower
    part shows the baseline directions from the samples of the next round, greener for larger consensus, and the truth
    in blue.
    """
    solved = [solve(pair, Options.paper(keep_trace=True)) for pair in pairs]
    chosen = min(solved, key=lambda each: (each.error_deg > RIGHT_DEG, each.right.mean()))
    trace = chosen.result.trace or ()
    figure = plot.new_figure((4 * max(len(trace), 1), 6))
    grid = figure.subplots(2, max(len(trace), 1), squeeze=False)
    pair = chosen.pair
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    for column, record in enumerate(trace):
        title = "before any model" if column == 0 else f"round {column}"
        draw_lines(grid[0, column], chosen, np.asarray(record.probabilities, float), title)
        axes = grid[1, column]
        axes.set_axis_off()
        if column:
            axes.set_axis_on()
            draw_directions(axes, problem, np.asarray(record.samples, np.int32), pair)
    share = f"{100 * chosen.right.mean():.0f} % right matches, pose error {chosen.error_deg:.1f}°"
    figure.suptitle(f"{pair.scene}/{pair.name}: {share}")
    return figure


def draw_directions(axes: Any, problem: Essential, samples: NDArray[np.int32], pair: Pair) -> None:
    """Draw the baselines of the models of samples, as azimuth and elevation in degrees, coloured by MSAC score."""
    models = problem.solve(samples) if len(samples) else problem.no_models
    if len(models):
        totals = problem.msac_scores(models, problem.pixel).sum(axis=1)
        order = np.argsort(totals, kind="stable")
        azimuth, elevation = directions(problem.outcomes(models)[order])
        axes.scatter(azimuth, elevation, c=totals[order], cmap="RdYlGn", s=6, linewidths=0)
    assert pair.t is not None
    axes.plot(*directions(pair.t[None]), color="blue", marker="*", markersize=12)
    axes.set(xlim=(-180, 180), ylim=(-90, 90), xlabel="azimuth of t, °", ylabel="elevation, °")


def directions(vectors: Array) -> tuple[Array, Array]:
    """Return azimuth and elevation in degrees of vectors (n, 3) relative to the axis of camera 1."""
    x, y, z = vectors.T
    return np.degrees(np.arctan2(x, z)), np.degrees(np.arctan2(y, np.hypot(x, z)))


def draw_results(pairs: Sequence[Pair]) -> Figure:
    """Draw figure 3: matches kept by LM-LO and by the paper's method on the hardest pairs; green right, red wrong."""
    hard = sorted(pairs, key=lambda pair: float(pair.right_matches().mean()))[:NUM_ROWS]
    figure = plot.new_figure((12, 3 * len(hard)))
    grid = figure.subplots(max(len(hard), 1), 2, squeeze=False)
    for row, pair in enumerate(hard):
        classical = solve(pair, Options(method="lm-lo", max_error_px=1.0, early_stop=False))
        paper = solve(pair, Options.paper())
        likely = paper.result.probabilities
        kept = paper.result.inliers if likely is None else likely > LIKELY
        for column, (each, shown, name) in enumerate(
            ((classical, classical.result.inliers, "LM-LO"), (paper, kept, PRESET))
        ):
            title = f"{name}: {each.error_deg:.1f}° ({100 * each.right.mean():.0f} % right matches)"
            draw_lines(grid[row, column], each, shown.astype(float), title)
    return figure


def draw_lines(axes: Any, solved: Solved, opacities: Array, title: str) -> None:
    """Draw matches between both images side by side, green for right ones and red for wrong ones."""
    from matplotlib.collections import LineCollection

    pair = solved.pair
    width = float(pair.points1[:, 0].max(initial=1.0)) * 1.05
    colours = np.where(solved.right[:, None], [0.0, 0.6, 0.0, 1.0], [0.85, 0.0, 0.0, 1.0])
    colours[:, 3] = 0.6 * np.clip(opacities, 0, 1)
    order = np.argsort(solved.right, kind="stable")
    lines = np.stack([pair.points1, pair.points2 + np.array([width, 0.0])], axis=1)
    axes.add_collection(LineCollection(list(lines[order]), colors=colours[order], linewidths=0.6))
    height = float(max(pair.points1[:, 1].max(initial=1.0), pair.points2[:, 1].max(initial=1.0)))
    right = width + float(pair.points2[:, 0].max(initial=1.0))
    axes.set(xlim=(0, right), ylim=(height, 0), aspect="equal", title=title)
    axes.set_axis_off()


def draw_runtime(pairs: Sequence[Pair]) -> Figure:
    """Draw figure 5: the breakdown of the time of the paper's method, averaged over pairs."""
    job = Job(BenchMethod(PRESET, None, PRESET), "E", RunSettings(), timed=True)
    solvable = [undistorted(pair) for pair in pairs]
    spent = [parts_ms(job, pair) for pair in solvable]
    means = {part: float(np.mean([each.get(part, 0.0) for each in spent])) for part in PARTS}
    total = sum(means.values())
    shown = {part: ms for part, ms in means.items() if ms > SMALLEST_SHARE * total and part != "other"}
    shown["other"] = total - sum(shown.values())
    figure = plot.new_figure((8, 5))
    axes = figure.add_subplot()
    labels = [f"{part}, {ms:.1f} ms" for part, ms in shown.items()]
    axes.pie(list(shown.values()), labels=labels, autopct="%.0f%%", textprops={"fontsize": "small"})
    learned = sum(shown.get(part, 0.0) for part in LEARNED)
    matches = np.mean([len(pair.points1) for pair in solvable])
    axes.set_title(
        f"{PRESET}: {total:.0f} ms per pair of {matches:.0f} matches, {100 * learned / max(total, 1e-9):.0f} % learned"
    )
    return figure


DRAW: dict[str, Callable[[Sequence[Pair]], Figure]] = {
    "figure-1": draw_progression,
    "figure-3": draw_results,
    "figure-5": draw_runtime,
}
assert tuple(DRAW) == FIGURES


def known_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with a true pose, without their own features."""
    return [replace(pair, features=None) for pair in pairs if pair.R is not None]

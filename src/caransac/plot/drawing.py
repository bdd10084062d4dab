"""Matches, epipolar lines, rounds, training and reliability, drawn."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, as_matches, as_points, as_reals
from caransac.geometry import Array, homogeneous
from caransac.plot.display import as_html
from caransac.plot.figures import PictureTarget, axes_of, deliver, set_title
from caransac.plot.spreading import MAX_LINES, spread_matches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from caransac.results import Result, TwoViewResult  # which shows itself with `display`, and so loads this package


def draw_matches(
    path: PictureTarget | None,
    points1: ArrayLike,
    points2: ArrayLike,
    probabilities: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    size2: tuple[int, int] | None = None,
    max_lines: int = MAX_LINES,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw matches between two images side by side, from red for wrong to green and opaque for right.

    Of many matches, the most probable ones of every part of image 1 are joined by lines; all are drawn as points.

    Args:
        path: where to write it, or None.
        points1: (n, 2) pixels in image 1, the centre of the top-left one at (0, 0).
        points2: (n, 2) pixels in image 2.
        probabilities: (n,) of being right, 0 to 1, as in ``result.probabilities``; or bool, as in ``result.inliers``.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: the same of image 2.
        size1: (width, height) of the frame in pixels without an image; None encloses the points.
        size2: the same of image 2.
        max_lines: matches to join by lines at most.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    first, second, _ = as_matches(points1, points2, None)
    shown = _as_probabilities(probabilities, len(first))
    _check_max_lines(max_lines)
    (width1, height1), (width2, height2) = _size(image1, size1, first), _size(image2, size2, second)
    shift = round(1.03 * width1)
    height = max(height1, height2)
    axes = axes_of(ax, (12, 12 * height / (shift + width2) + 0.5), (1, 1))[0, 0]
    from matplotlib.collections import LineCollection

    _draw_image(axes, image1, (width1, height1))
    _draw_image(axes, image2, (width2, height2), shift)
    ends = np.stack([first, second + np.array([shift, 0])], axis=1)
    if len(first) > max_lines:
        order = np.argsort(shown, kind="stable")  # the probable ones above the others
        for points in (ends[order, 0], ends[order, 1]):
            axes.scatter(points[:, 0], points[:, 1], s=4, c=_colours(shown[order]), linewidths=0)
    joined = spread_matches(first, shown, (width1, height1), max_lines)
    axes.add_collection(LineCollection(list(ends[joined]), colors=_colours(shown[joined]), linewidths=0.8))
    axes.set(xlim=(-1, shift + width2), ylim=(height, -1), aspect="equal", title=title)
    axes.set_axis_off()
    return deliver(axes, path)


def draw_flow(
    path: PictureTarget | None,
    points1: ArrayLike,
    points2: ArrayLike,
    probabilities: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    length: float = 0.04,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw the points of image 1, each likely one with a short line towards its place in image 2.

    Right matches of a scene flow together, wrong ones do not: this shows many matches where lines across two images
    would hide everything.

    Args:
        path: where to write it, or None.
        points1: (n, 2) pixels in image 1, the centre of the top-left one at (0, 0).
        points2: (n, 2) pixels in image 2.
        probabilities: (n,) of being right, 0 to 1, as in ``result.probabilities``; or bool, as in ``result.inliers``.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        size1: (width, height) of the frame in pixels without an image; None encloses the points.
        length: of the median line, in widths of the image; all lines are scaled alike.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    first, second, _ = as_matches(points1, points2, None)
    shown = _as_probabilities(probabilities, len(first))
    width, height = _size(image1, size1, first)
    axes = axes_of(ax, (9, 9 * height / width + 0.5), (1, 1))[0, 0]
    from matplotlib.collections import LineCollection

    _draw_image(axes, image1, (width, height))
    order = np.argsort(shown, kind="stable")
    likely = order[shown[order] > 0.5]
    flow = second[likely] - first[likely]
    usual = float(np.median(np.linalg.norm(flow, axis=1))) if len(likely) else 0.0
    flow = flow * (length * width / usual if usual > 0 else 1.0)
    lines = np.stack([first[likely], first[likely] + flow], axis=1)
    axes.add_collection(LineCollection(list(lines), colors=_colours(shown[likely]), linewidths=0.9))
    axes.scatter(first[order, 0], first[order, 1], s=7, c=_colours(shown[order]), linewidths=0, zorder=3)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", title=title)
    axes.set_axis_off()
    return deliver(axes, path)


def draw_points3d(
    path: PictureTarget | None, result: TwoViewResult, *, title: str = "", ax: Axes | None = None
) -> Figure:
    """Draw the triangulated inliers and both cameras from above, as camera 1 stands: x to the right, z ahead.

    The darker a point, the smaller the angle between its rays, and the less sure its depth.

    Args:
        path: where to write it, or None.
        result: with a pose; its `points3d` are drawn, but for the farthest hundredth.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    points3d, R, t = result.points3d, getattr(result, "R", None), getattr(result, "t", None)
    if points3d is None or R is None or t is None:
        raise ValueError("result must have a pose with a translation: it has no points3d")
    axes = axes_of(ax, (7, 6), (1, 1))[0, 0]
    xyz = points3d.xyz
    near = xyz[:, 2] <= np.percentile(xyz[:, 2], 99) if len(xyz) else np.zeros(0, bool)
    shown = axes.scatter(xyz[near, 0], xyz[near, 2], c=points3d.angle_deg[near], s=6, cmap="viridis")
    axes.figure.colorbar(shown, ax=axes, label="angle between the rays in degrees")
    for name, centre, ahead in (("1", np.zeros(3), np.array([0.0, 0, 1])), ("2", -R.T @ t, R[2])):
        axes.plot(*np.stack([centre, centre + 0.5 * ahead])[:, [0, 2]].T, color="black")
        axes.annotate(name, centre[[0, 2]], ha="right", va="top")
    axes.set(aspect="equal", xlabel="x in baselines", ylabel="z in baselines", title=title)
    return deliver(axes, path)


def summary(
    result: Result,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
) -> Summary:
    """The result with a small picture of its matches, for a notebook to display.

    Args:
        result: what was estimated, successful or not.
        points1: (n, 2) pixels in image 1, as given to the estimation.
        points2: (n, 2) pixels in image 2.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: the same of image 2.
    """
    shown = result.inliers if result.probabilities is None else result.probabilities
    file = BytesIO()
    draw_matches(file, points1, points2, shown, image1=image1, image2=image2)
    return Summary(result, file.getvalue())


@dataclass(frozen=True)
class Summary:
    """A result with a picture, which notebooks display.

    Attributes:
        result: what was estimated.
        picture: its matches, as PNG.
    """

    result: Result
    picture: bytes

    def _repr_html_(self) -> str:
        return as_html(self.result, "data:image/png;base64," + base64.b64encode(self.picture).decode())

    def __repr__(self) -> str:
        return repr(self.result)


def draw_epipolar_lines(
    path: PictureTarget | None,
    F: ArrayLike,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    size2: tuple[int, int] | None = None,
    max_lines: int = 20,
    title: str = "",
    ax: Sequence[Axes] | None = None,
) -> Figure:
    """Draw both images with points and the epipolar lines of their matches, one colour per match.

    Args:
        path: where to write it, or None.
        F: (3, 3) fundamental matrix of pixels; of a pose it is ``geometry.fundamental_from_essential(E, K1, K2)``.
        points1: (n, 2) pixels in image 1, the centre of the top-left one at (0, 0).
        points2: (n, 2) pixels in image 2.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: the same of image 2.
        size1: (width, height) of the frame in pixels without an image; None encloses the points.
        size2: the same of image 2.
        max_lines: matches to draw at most, evenly taken from those given.
        title: a line above the picture.
        ax: two axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    first, second, _ = as_matches(points1, points2, None)
    matrix = as_reals(F, "F")
    if matrix.shape != (3, 3):
        raise ValueError(f"F must have shape (3, 3), got {matrix.shape}")
    _check_max_lines(max_lines)
    chosen = np.unique(np.linspace(0, len(first) - 1, min(max_lines, len(first))).astype(int))
    sizes = _size(image1, size1, first), _size(image2, size2, second)
    both = axes_of(ax, (12, 6 * max(height / width for width, height in sizes) + 0.5), (1, 2))[0]
    from matplotlib import colormaps

    colours = colormaps["hsv"](np.linspace(0, 1, len(chosen), endpoint=False))
    epipolar = homogeneous(second[chosen]) @ matrix, homogeneous(first[chosen]) @ matrix.T
    views = zip(both, (image1, image2), sizes, (first[chosen], second[chosen]), epipolar, strict=True)
    for axes, image, (width, height), points, lines in views:
        _draw_image(axes, image, (width, height))
        _draw_lines(axes, lines, colours)
        axes.scatter(points[:, 0], points[:, 1], s=18, color=colours, edgecolors="black", linewidths=0.5, zorder=3)
        axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal")
        axes.set_axis_off()
    set_title(both[0], title, ax)
    return deliver(both[0], path)


def draw_progression(
    path: PictureTarget | None,
    result: Result,
    points1: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    max_rounds: int = 6,
    title: str = "",
    ax: ArrayLike | None = None,
) -> Figure:
    """Draw how the probabilities of the matches sharpen over the rounds: in image 1, and as histograms.

    Args:
        path: where to write it, or None.
        result: a result of "ca-ransac" with a trace (``Options(keep_trace=True)``).
        points1: (n, 2) pixels in image 1, the centre of the top-left one at (0, 0).
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        size1: (width, height) of the frame in pixels without an image; None encloses the points.
        max_rounds: records of the trace to draw at most, the first and the last among them.
        title: a line above the picture.
        ax: (2, k) axes to draw on instead of a new figure, as ``plt.subplots(2, k)`` makes them: k records are drawn.

    Returns:
        The figure.
    """
    if not result.trace:
        raise ValueError("result has no trace; estimate with method 'ca-ransac' and Options(keep_trace=True)")
    points = as_points(points1, "points1")
    size = _size(image1, size1, points)
    columns = max(max_rounds, 2) if ax is None else np.shape(as_array(ax, "ax"))[-1]
    chosen = np.unique(np.linspace(0, len(result.trace) - 1, min(columns, len(result.trace))).astype(int))
    aspect = size[1] / size[0]
    grid = axes_of(ax, (3 * len(chosen), 3 * aspect + 2), (2, len(chosen)), heights=(3 * aspect, 1.2))
    for column, step in enumerate(chosen):
        probabilities = _as_probabilities(result.trace[step].probabilities, len(points))
        order = np.argsort(probabilities, kind="stable")
        axes = grid[0, column]
        _draw_image(axes, image1, size)
        axes.scatter(points[order, 0], points[order, 1], s=8, c=_colours(probabilities[order]), linewidths=0)
        axes.set(xlim=(-0.5, size[0] - 0.5), ylim=(size[1] - 0.5, -0.5), aspect="equal")
        axes.set(title="before any model" if step == 0 else f"round {step}")
        axes.set_axis_off()
        axes = grid[1, column]
        counts, edges = np.histogram(probabilities, bins=20, range=(0, 1))
        axes.bar(edges[:-1], counts, width=0.05, align="edge", color=_colours(edges[:-1] + 0.025)[:, :3])
        axes.set(yscale="symlog", ylim=(0, 2 * max(len(points), 1)), xlim=(0, 1), xlabel="probability")
        axes.set(ylabel="matches" if column == 0 else "")
    set_title(grid[0, 0], title, ax)
    return deliver(grid[0, 0], path)


def _check_max_lines(max_lines: int) -> None:
    if max_lines < 1:
        raise ValueError(f"max_lines must be at least 1, not {max_lines}")


def _as_probabilities(values: ArrayLike, count: int) -> Array:
    """Probabilities or booleans, one per match, as numbers (n,) from 0 to 1."""
    probabilities = as_array(values, "probabilities").astype(float)
    if probabilities.shape != (count,):
        raise ValueError(f"probabilities must have shape ({count},), one per match, got {probabilities.shape}")
    return np.asarray(np.clip(probabilities, 0, 1))


def _colours(probabilities: Array) -> Array:
    """RGBA (n, 4): from faint red at 0 to solid green at 1."""
    from matplotlib import colormaps

    colours = colormaps["RdYlGn"](probabilities)
    colours[:, 3] = 0.15 + 0.55 * probabilities
    return np.asarray(colours)


def _size(image: ArrayLike | None, size: tuple[int, int] | None, points: Array) -> tuple[int, int]:
    """Width and height of an image, or else as given, or else so that all points are inside."""
    if image is not None:
        height, width = np.shape(image)[:2]
        return width, height
    if size is not None:
        return size
    right, bottom = np.ceil(points.max(axis=0, initial=1)).astype(int) + 1
    return int(right), int(bottom)


def _draw_image(axes: Axes, image: ArrayLike | None, size: tuple[int, int], left: int = 0) -> None:
    """Draw an image, or a frame of its size, so that the centre of its top-left pixel is (left, 0)."""
    width, height = size
    extent = (left - 0.5, left + width - 0.5, height - 0.5, -0.5)
    if image is not None:
        axes.imshow(as_array(image, "image"), cmap="gray", vmin=0, vmax=255, extent=extent, alpha=0.7)
    x1, x2, y2, y1 = extent
    axes.plot([x1, x2, x2, x1, x1], [y1, y1, y2, y2, y1], color="0.4", lw=1)


def _draw_lines(axes: Axes, lines: Array, colours: Array) -> None:
    """Draw lines (n, 3), ``a x + b y + c = 0``, in colours (n, 4)."""
    for (a, b, c), colour in zip(lines, colours, strict=True):
        if np.hypot(a, b) > 0:  # the line of an epipole is none
            foot = -c * np.array([a, b]) / (a * a + b * b)
            axes.axline(foot, foot + np.array([b, -a]) / np.hypot(a, b), color=colour, lw=0.8)


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

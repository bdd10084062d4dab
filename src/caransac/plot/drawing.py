"""Draw matches, epipolar lines, rounds and 3D points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, as_matches, as_points, as_reals, check_real
from caransac.geometry import homogeneous
from caransac.plot.figures import PictureTarget, axes_of, deliver, set_title
from caransac.plot.image_axes import (
    add_legend,
    as_probabilities,
    check_max_lines,
    colours_of,
    draw_image,
    draw_lines,
    size_of,
)
from caransac.plot.spreading import MAX_LINES, spread_matches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from caransac.results import Result, TwoViewResult  # results import `display`, and thereby this package

MOST_WIDTHS = 100.0  # maximum length of a flow line, in image widths


def draw_matches(
    path: PictureTarget | ArrayLike | None,
    points1: ArrayLike | None,
    points2: ArrayLike | TwoViewResult,
    probabilities: ArrayLike | None = None,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    size2: tuple[int, int] | None = None,
    max_lines: int = MAX_LINES,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw matches between two images side by side: red for outliers, green and opaque for inliers.

    All matches are drawn as points. If there are many, only the most probable ones of every part of image 1 are joined
    by lines. ``draw_matches(image1, image2, result)`` draws the matches of a result; the returned figure has
    ``savefig``.

    Args:
        path: path of the picture, or an open file, or None.
        points1: (n, 2) pixels in image 1; (0, 0) is the centre of the top-left pixel.
        points2: (n, 2) pixels in image 2.
        probabilities: (n,) inlier probabilities, as in ``result.probabilities``, or bool, as in ``result.inliers``.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: image 2 in the same form.
        size1: (width, height) in pixels of the frame if there is no image; None for a frame around the points.
        size2: size of the frame of image 2.
        max_lines: maximum number of matches that are joined by lines.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    if hasattr(points2, "inliers"):
        result: Any = points2
        image1, image2, path = cast(ArrayLike | None, path), points1, None
        points1, points2 = result.points1, result.points2
        probabilities = result.inliers if result.probabilities is None else result.probabilities
    first, second, _ = as_matches(cast(ArrayLike, points1), cast(ArrayLike, points2), None)
    shown = as_probabilities(cast(ArrayLike, probabilities), len(first))
    check_max_lines(max_lines)
    (width1, height1), (width2, height2) = size_of(image1, size1, first, 1), size_of(image2, size2, second, 2)
    shift = round(1.03 * width1)
    height = max(height1, height2)
    axes = axes_of(ax, (12, 12 * height / (shift + width2) + 0.8), (1, 1))[0, 0]
    from matplotlib.collections import LineCollection

    draw_image(axes, image1, (width1, height1))
    draw_image(axes, image2, (width2, height2), shift)
    ends = np.stack([first, second + np.array([shift, 0])], axis=1)
    if len(first) > max_lines:
        order = np.argsort(shown, kind="stable")  # probable matches are drawn above the others
        for points in (ends[order, 0], ends[order, 1]):
            axes.scatter(points[:, 0], points[:, 1], s=4, c=colours_of(shown[order]), linewidths=0)
    joined = spread_matches(first, shown, (width1, height1), max_lines)
    axes.add_collection(LineCollection(list(ends[joined]), colors=colours_of(shown[joined]), linewidths=0.8))
    axes.set(xlim=(-1, shift + width2), ylim=(height, -1), aspect="equal", title=title)
    axes.set_axis_off()
    add_legend(axes, ax)
    return deliver(axes, cast(PictureTarget | None, path))


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
    """Draw the points of image 1, with a short line from each probable one towards its position in image 2.

    Inliers of a scene move consistently; outliers do not. The picture shows many matches at once. Lines across two
    images would hide them.

    Args:
        path: path of the picture, or an open file, or None.
        points1: (n, 2) pixels in image 1; (0, 0) is the centre of the top-left pixel.
        points2: (n, 2) pixels in image 2.
        probabilities: (n,) inlier probabilities, as in ``result.probabilities``, or bool, as in ``result.inliers``.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        size1: (width, height) in pixels of the frame if there is no image; None for a frame around the points.
        length: length of the median line, in image widths. All lines have the same scale.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    first, second, _ = as_matches(points1, points2, None)
    shown = as_probabilities(probabilities, len(first))
    check_real(length, "length", 0.0, MOST_WIDTHS)
    width, height = size_of(image1, size1, first, 1)
    axes = axes_of(ax, (9, 9 * height / width + 0.8), (1, 1))[0, 0]
    from matplotlib.collections import LineCollection

    draw_image(axes, image1, (width, height))
    order = np.argsort(shown, kind="stable")
    likely = order[shown[order] > 0.5]
    flow = second[likely] - first[likely]
    usual = float(np.median(np.linalg.norm(flow, axis=1))) if len(likely) else 0.0
    flow = flow * (length * width / usual if usual > 0 else 1.0)
    lines = np.stack([first[likely], first[likely] + flow], axis=1)
    axes.add_collection(LineCollection(list(lines), colors=colours_of(shown[likely]), linewidths=0.9))
    axes.scatter(first[order, 0], first[order, 1], s=7, c=colours_of(shown[order]), linewidths=0, zorder=3)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal", title=title)
    axes.set_axis_off()
    add_legend(axes, ax, "a line points to the position in image 2")
    return deliver(axes, path)


def draw_points3d(
    path: PictureTarget | None, result: TwoViewResult, *, title: str = "", ax: Axes | None = None
) -> Figure:
    """Draw the triangulated inliers and both cameras from above. Camera 1 looks along z, with x to the right.

    Dark points have a small angle between their rays and thus an uncertain depth.

    Args:
        path: path of the picture, or an open file, or None.
        result: result with a pose. Its `points3d` are drawn, except the farthest one per cent.
        title: a line above the picture.
        ax: axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    points3d, R, t = (getattr(result, name, None) for name in ("points3d", "R", "t"))
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
        path: path of the picture, or an open file, or None.
        F: (3, 3) fundamental matrix of pixels. For a pose, use ``geometry.fundamental_from_essential(E, K1, K2)``.
        points1: (n, 2) pixels in image 1; (0, 0) is the centre of the top-left pixel.
        points2: (n, 2) pixels in image 2.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: image 2 in the same form.
        size1: (width, height) in pixels of the frame if there is no image; None for a frame around the points.
        size2: size of the frame of image 2.
        max_lines: maximum number of matches to draw, selected at even intervals.
        title: a line above the picture.
        ax: two axes to draw on instead of a new figure.

    Returns:
        The figure.
    """
    first, second, _ = as_matches(points1, points2, None)
    matrix = as_reals(F, "F")
    if matrix.shape != (3, 3):
        raise ValueError(f"F must have shape (3, 3), got {matrix.shape}")
    check_max_lines(max_lines)
    chosen = np.unique(np.linspace(0, len(first) - 1, min(max_lines, len(first))).astype(int))
    sizes = size_of(image1, size1, first, 1), size_of(image2, size2, second, 2)
    both = axes_of(ax, (12, 6 * max(height / width for width, height in sizes) + 0.5), (1, 2))[0]
    from matplotlib import colormaps

    colours = colormaps["hsv"](np.linspace(0, 1, len(chosen), endpoint=False))
    epipolar = homogeneous(second[chosen]) @ matrix, homogeneous(first[chosen]) @ matrix.T
    views = zip(both, (image1, image2), sizes, (first[chosen], second[chosen]), epipolar, strict=True)
    for axes, image, (width, height), points, lines in views:
        draw_image(axes, image, (width, height))
        draw_lines(axes, lines, colours)
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
    """Draw how the inlier probabilities sharpen over the rounds: on image 1 and as histograms.

    Args:
        path: path of the picture, or an open file, or None.
        result: a result of "ca-ransac" with a trace (``Options(keep_trace=True)``).
        points1: (n, 2) pixels in image 1; (0, 0) is the centre of the top-left pixel.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        size1: (width, height) in pixels of the frame if there is no image; None for a frame around the points.
        max_rounds: maximum number of rounds to draw, including the first and the last.
        title: a line above the picture.
        ax: (2, k) axes to draw on instead of a new figure, as from ``plt.subplots(2, k)``; k rounds are drawn.

    Returns:
        The figure.
    """
    if not result.trace:
        raise ValueError("result has no trace; estimate with method 'ca-ransac' and Options(keep_trace=True)")
    points = as_points(points1, "points1")
    size = size_of(image1, size1, points, 1)
    columns = max(max_rounds, 2) if ax is None else np.shape(as_array(ax, "ax"))[-1]
    chosen = np.unique(np.linspace(0, len(result.trace) - 1, min(columns, len(result.trace))).astype(int))
    aspect = size[1] / size[0]
    grid = axes_of(ax, (3 * len(chosen), 3 * aspect + 2), (2, len(chosen)), heights=(3 * aspect, 1.2))
    for column, step in enumerate(chosen):
        probabilities = as_probabilities(result.trace[step].probabilities, len(points))
        order = np.argsort(probabilities, kind="stable")
        axes = grid[0, column]
        draw_image(axes, image1, size)
        axes.scatter(points[order, 0], points[order, 1], s=8, c=colours_of(probabilities[order]), linewidths=0)
        axes.set(xlim=(-0.5, size[0] - 0.5), ylim=(size[1] - 0.5, -0.5), aspect="equal")
        axes.set(title="before any model" if step == 0 else f"round {step}")
        axes.set_axis_off()
        axes = grid[1, column]
        counts, edges = np.histogram(probabilities, bins=20, range=(0, 1))
        axes.bar(edges[:-1], counts, width=0.05, align="edge", color=colours_of(edges[:-1] + 0.025)[:, :3])
        axes.set(yscale="symlog", ylim=(0, 2 * max(len(points), 1)), xlim=(0, 1), xlabel="probability")
        axes.set(ylabel="matches" if column == 0 else "")
    set_title(grid[0, 0], title, ax)
    return deliver(grid[0, 0], path)

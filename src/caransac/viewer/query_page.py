"""Show a localised image as a page: the result, and the inliers drawn on the image."""

from __future__ import annotations

import base64
import html
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caransac._support.files import replacing
from caransac.geometry import Array, quaternion_from_rotation
from caransac.plot.display import facts_of
from caransac.results import AbsolutePoseResult
from caransac.viewer.report import MAX_IMAGE_PX, encode_jpeg, fill_page

MOST_DRAWN = 4000  # maximum number of matches; inliers come first
BINS = 20  # number of bars of the histogram


def write_query_page(
    path: Path, name: str, result: AbsolutePoseResult, image: NDArray[np.uint8] | None, size: tuple[int, int]
) -> Path:
    """Write the page of a query image and return its path.

    Args:
        path: path of the page.
        name: name of the image.
        result: the result, successful or not.
        image: (H, W, 3) uint8 RGB, or None to draw without it.
        size: (width, height) of the image in pixels.
    """
    data = "" if image is None else base64.b64encode(encode_jpeg(image, MAX_IMAGE_PX)).decode()
    shown = f'<image href="data:image/jpeg;base64,{data}" width="{size[0]}" height="{size[1]}"/>' if data else ""
    page = fill_page(
        "query.html",
        ("query.js",),
        name,
        subtitle="pose of the camera, x = R X + t",
        box=f"0 0 {size[0]} {size[1]}",
        marks=shown + _marks(result, max(size)),
        confidence=f"{result.confidence or 0.0:.4f}",
        hero="unknown" if result.confidence is None else f"{result.confidence:.3f}",
        facts="".join(f"<dt>{html.escape(key)}</dt>{value}" for key, value in _facts(result).items()),
        distances=_histogram(result),
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _facts(result: AbsolutePoseResult) -> dict[str, str]:
    """Return the rows of the table of results, with values in HTML."""
    rows = {name: f"<dd>{html.escape(value)}</dd>" for name, value in facts_of(result).items()}
    if result.R is None or result.t is None or result.centre is None:
        return rows
    q = quaternion_from_rotation(result.R)
    matrices = {"camera centre": result.centre, "[R | t]": np.c_[result.R, result.t], "COLMAP": np.r_[q, result.t]}
    texts = {name: np.array2string(values, precision=5, suppress_small=True) for name, values in matrices.items()}
    return rows | {name: f'<dd class="matrix">{html.escape(text)}</dd>' for name, text in texts.items()}


def _histogram(result: AbsolutePoseResult) -> str:
    """Draw the distances of the inliers as bars. The right edge is the threshold."""
    off = np.linalg.norm(_reprojections(result) - result.points2d, axis=1)[result.inliers]
    counts = np.histogram(off, BINS, (0.0, result.max_error_px))[0]
    heights = counts / max(counts.max(), 1)
    bars = "".join(
        f'<rect x="{i}" y="{1 - height:.3f}" width="0.9" height="{height:.3f}"/>' for i, height in enumerate(heights)
    )
    frame = f'viewBox="0 0 {BINS} 1" preserveAspectRatio="none" width="100%" height="200" fill="currentColor"'
    return f'<svg {frame}>{bars}</svg><p class="caption">from 0 to the threshold, {result.max_error_px:.2f} px</p>'


def _marks(result: AbsolutePoseResult, longer: int) -> str:
    """Draw each match: a circle at its pixel, its values, and for inliers a line to the projected point."""
    radius, marks = max(longer / 300, 1.0), []
    probabilities = result.inliers.astype(float) if result.probabilities is None else result.probabilities
    seen = _reprojections(result)
    for i in np.argsort(~result.inliers, kind="stable")[:MOST_DRAWN]:
        (x, y), probability = result.points2d[i], float(probabilities[i])
        style = f'fill="hsl({round(120 * probability)} 90% 45%)"' if result.inliers[i] else 'fill="none" stroke="#888"'
        line, told = "", f"match {i}: probability {probability:.2f}"
        if result.inliers[i]:
            u, v = seen[i]
            line = f'<path d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}" stroke="#08f" stroke-width="{radius / 3:.1f}"/>'
            told += f", {float(np.hypot(u - x, v - y)):.2f} px off"
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {style}/>'
        marks.append(f'<g data-probability="{probability:.3f}"><title>{told}</title>{circle}{line}</g>')
    return "".join(marks)


def _reprojections(result: AbsolutePoseResult) -> Array:
    """Project the points (N, 2). The result is meaningful for inliers, which are in front of the camera."""
    if result.R is None or result.t is None or result.camera is None:
        return np.zeros_like(result.points2d)
    seen = result.points3d @ result.R.T + result.t
    depths = np.where(seen[:, 2:] > 0, seen[:, 2:], 1.0)
    return result.camera.rays_to_pixels(seen[:, :2] / depths)

"""A localised image as a page: what was found, and the inliers drawn on the image."""

from __future__ import annotations

import base64
import html
from pathlib import Path

import numpy as np

from caransac._support.files import replacing
from caransac.geometry import Array
from caransac.plot.display import as_html
from caransac.results import AbsolutePoseResult

STYLE = "body{font:15px system-ui,sans-serif;margin:2em;max-width:75em}svg{max-width:100%;height:auto;margin-top:1em}"
LEGEND = (
    "Inliers are filled, the more probable the greener; other matches are rings. Lines lead to where points are seen."
)
CHOICE = (
    '<p><label>Matches with a probability from <input id="least" type="range" min="0" max="1" step="0.01" value="0">'
    ' <output id="shown">0</output></label></p>'
)
SCRIPT = """<script>
const least = document.getElementById("least");
least.addEventListener("input", () => {
    document.getElementById("shown").value = least.value;
    for (const mark of document.querySelectorAll("svg g"))
        mark.style.display = Number(mark.dataset.probability) < Number(least.value) ? "none" : "";
});
</script>"""
MOST_DRAWN = 4000  # matches, the inliers first


def write_query_page(
    path: Path, name: str, result: AbsolutePoseResult, image: bytes | None, size: tuple[int, int]
) -> Path:
    """Write the page of a query; returns its path.

    Args:
        path: where to.
        name: of the image.
        result: what was found, successful or not.
        image: the image as a JPEG or PNG file, or None to draw without.
        size: (width, height) of the image in pixels.
    """
    width, height = size
    kind = "png" if image is not None and image.startswith(b"\x89PNG") else "jpeg"
    data = "" if image is None else base64.b64encode(image).decode()
    shown = f'<image href="data:image/{kind};base64,{data}" width="{width}" height="{height}"/>' if data else ""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(name)}</title><style>{STYLE}</style>'
        f"<h1>{html.escape(name)}</h1>{as_html(result)}<p>{LEGEND}</p>{CHOICE}"
        f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="matches">'
        f"{shown}{_marks(result, max(width, height))}</svg>{SCRIPT}</html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _marks(result: AbsolutePoseResult, longer: int) -> str:
    """A group for each match: a circle at its pixel, of inliers a line to where its point is seen, and its figures."""
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
    """(N, 2) where the camera sees the points; of use for inliers, which are in front of it."""
    if result.R is None or result.t is None or result.camera is None:
        return np.zeros_like(result.points2d)
    seen = result.points3d @ result.R.T + result.t
    depths = np.where(seen[:, 2:] > 0, seen[:, 2:], 1.0)
    return result.camera.rays_to_pixels(seen[:, :2] / depths)

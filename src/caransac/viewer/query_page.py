"""A localised image as a page: what was found, and the inliers drawn on the image."""

from __future__ import annotations

import base64
import html
from pathlib import Path

import numpy as np

from caransac._support.files import replacing
from caransac.plot.display import as_html
from caransac.results import AbsolutePoseResult

STYLE = "body{font:15px system-ui,sans-serif;margin:2em;max-width:75em}svg{max-width:100%;height:auto;margin-top:1em}"
LEGEND = "Inliers are filled, the more surely right the greener; other matches are rings."
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
        f"<h1>{html.escape(name)}</h1>{as_html(result)}<p>{LEGEND}</p>"
        f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="matches">'
        f"{shown}{_marks(result, max(width, height))}</svg></html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _marks(result: AbsolutePoseResult, longer: int) -> str:
    """Circles at the matches."""
    radius, marks = max(longer / 300, 1.0), []
    probabilities = result.inliers.astype(float) if result.probabilities is None else result.probabilities
    for i in np.argsort(~result.inliers, kind="stable")[:MOST_DRAWN]:
        x, y = result.points2d[i]
        hue = round(120 * float(probabilities[i]))
        style = f'fill="hsl({hue} 90% 45%)"' if result.inliers[i] else 'fill="none" stroke="#888"'
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {style}/>')
    return "".join(marks)

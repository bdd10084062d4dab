"""Show results as a line of text or as a small table for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

import numpy as np

from caransac.camera_words import describe_focal
from caransac.geometry import rotation_angle_deg

IN_A_LINE = {"rotation": "rotation {}", "translation": "t {}", "confidence": "confidence {}"}
MATRICES = ("R", "t", "E", "F", "H")  # fields of results that contain models
STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"


def describe(result: Any) -> str:
    """Return a result as one line: ``RelativePoseResult(success, rotation 12.3°, 412 of 1000 inliers, ...)``."""
    facts = (IN_A_LINE.get(name, "{}").format(value) for name, value in _facts(result).items())
    return f"{type(result).__name__}({', '.join(facts)})"


def as_html(result: Any, picture: str = "") -> str:
    """Return a result as an HTML table with collapsed matrices and an optional picture.

    Args:
        result: the result, successful or not.
        picture: address of an image to show below the table, ``data:image/png;base64,...``; empty for none.
    """
    rows = "".join(
        f'<tr><th style="text-align:left;padding-right:1em">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in facts_of(result).items()
    )
    matrices = "".join(
        f"<pre>{name} = {html.escape(np.array2string(matrix, precision=5, suppress_small=True))}</pre>"
        for name, matrix in _matrices(result)
    )
    unfold = f"<details><summary>matrices</summary>{matrices}</details>" if matrices else ""
    shown = f'<img src="{html.escape(picture)}" alt="matches" style="max-width:100%">' if picture else ""
    return f'<div><b>{type(result).__name__}</b><table style="{STYLE}">{rows}</table>{unfold}{shown}</div>'


def facts_of(result: Any) -> dict[str, str]:
    """Return the facts about a result and its cameras, by name."""
    return _facts(result) | _cameras(result)


def _facts(result: Any) -> dict[str, str]:
    """Return the facts about a result, by name."""
    facts = {"kind": result.kind} if hasattr(result, "kind") else {}
    facts |= {"result": "success" if result.success else f"no success: {result.stop_reason}"}
    if getattr(result, "R", None) is not None:
        facts["rotation"] = f"{rotation_angle_deg(result.R):.1f}°"
    if getattr(result, "t", None) is not None:
        facts["translation"] = f"({', '.join(f'{x:.2f}' for x in result.t)})"
    facts["matches"] = f"{result.num_inliers} of {len(result.inliers)} inliers"
    if result.confidence is not None:
        facts["confidence"] = f"{result.confidence:.2f}"
    facts["time"] = f"{1e3 * result.elapsed_s:.1f} ms"
    return facts


def _cameras(result: Any) -> dict[str, str]:
    """Return the facts about the refined cameras."""
    names = {"camera": "camera", "camera 1": "camera1", "camera 2": "camera2"}
    cameras = ((name, getattr(result, field, None)) for name, field in names.items())
    uncertain = ((name, each) for name, each in cameras if each and (each.focal_deviation or each.distortion_deviation))
    return {name: f"focal length {describe_focal(camera)}" for name, camera in uncertain}


def _matrices(result: Any) -> Iterable[tuple[str, Any]]:
    return ((name, matrix) for name in MATRICES if (matrix := getattr(result, name, None)) is not None)

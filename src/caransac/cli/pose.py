"""caransac pose: the relative pose of two images."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac.cli import inputs, two_views
from caransac.cli.camera_arguments import IF_KNOWN, describe_camera
from caransac.cli.inputs import TwoViews
from caransac.cli.quiet import say, show
from caransac.cli.two_views import FoundGeometry
from caransac.geometry import Array, rotation_angle_deg
from caransac.io.matches import SUFFIXES, write_matches
from caransac.options import Options
from caransac.result_format import to_plain
from caransac.results import FundamentalResult, GeometryResult

DESCRIPTION = """\
Match two images and estimate the pose of camera 2 relative to camera 1,
x2 = R x1 + t with |t| = 1. Unknown and uncertain focal lengths are estimated,
too. The inliers are refined in the images, and the result is estimated again
from them. The result is a homography if the scene is a plane whose pose is
ambiguous, and a rotation if the camera turned without moving. The exit code is
0 for a reliable result, 1 if there is none or its confidence is below
--min-confidence, and 2 for a wrong argument or an unreadable file. Images need
the extra 'images'."""
EXAMPLES = """\
examples:
  caransac pose a.jpg b.jpg                       cameras from EXIF or estimated
  caransac pose a.png b.png --focal 1200          in pixels, exact, for both
  caransac pose a.png b.png --focal 1200±5%       known to five per cent
  caransac pose a.png b.png --camera 576,319.5,239.5
  caransac pose a.jpg b.jpg --html report.html --save matches.npz
  caransac pose a.jpg b.jpg --max-size 0          full resolution: slow
  caransac pose a.jpg b.jpg --no-refine           from the keypoints alone
  caransac pose --matches matches.npz --json
  my_matcher a.jpg b.jpg | caransac pose --matches - --image-size 640x480
  caransac pose --matches loftr.txt --score-kind confidence --camera 520,320,240
  caransac pose --matches loftr.txt --score-kind confidence --image-size 640x480
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "estimate the relative pose of two images, or of matches in a file"
    parser = inputs.add_command(commands, "pose", about=about, text=DESCRIPTION, examples=EXAMPLES)
    two_views.add_options(parser, Options()).add_argument(
        "--min-confidence",
        type=float,
        metavar="P",
        help="minimum confidence, from 0 to 1; the exit code is 1 if the result has a lower confidence",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the answer as one line of JSON, for other programs")
    output.add_argument("--html", type=Path, metavar="FILE", help="write a report for a browser")
    output.add_argument(
        "--save", type=Path, metavar="FILE", help=f"write the matches and cameras to a file ({', '.join(SUFFIXES)})"
    )
    parser.set_defaults(run=pose)


def pose(arguments: argparse.Namespace) -> int:
    """Estimate the geometry, print the answer, write the requested files and return the exit code."""
    if arguments.save is not None and arguments.save.suffix not in SUFFIXES:
        raise ValueError(f"--save {arguments.save}: the name must end in one of {', '.join(SUFFIXES)}")
    inputs.check_outputs(arguments, save=arguments.save, html=arguments.html)
    check_min_confidence(arguments)
    options = two_views.read_options(arguments, keep_trace=arguments.html is not None)
    views = inputs.read_views(arguments)
    found = two_views.estimate(views, options)
    result = two_views.rely_on(found)
    if arguments.json:
        print(json.dumps(as_json(views, result), allow_nan=False))
    elif result.success and not arguments.quiet:
        print(as_text(views, result))
    written = {}
    if arguments.save is not None:
        written["Matches"] = write_matches(arguments.save, views.matches)
    if arguments.html is not None:
        written["Report"] = two_views.write_html(arguments.html, views, found)
    for name, path in {} if arguments.quiet else written.items():
        (say if arguments.json else show)(f"{name}: {path.resolve()}")
    reason = explain_rejection(views, result, arguments.min_confidence)
    if reason is not None:
        say(f"caransac: {reason}")
    return 0 if reason is None else 1


def check_min_confidence(arguments: argparse.Namespace) -> None:
    """Raise a ValueError if --min-confidence is not a probability, or the method has no confidence."""
    if arguments.min_confidence is None:
        return
    if not 0 <= arguments.min_confidence <= 1:
        raise ValueError(f"--min-confidence must be from 0 to 1, not {arguments.min_confidence:g}")
    if arguments.method != "ca-ransac":
        raise ValueError(f"--min-confidence needs --method ca-ransac: {arguments.method} has no confidence")


def explain_rejection(views: TwoViews, result: FoundGeometry, min_confidence: float | None) -> str | None:
    """Return the reason for rejecting an answer, or None if it is accepted."""
    if not result.success:
        return two_views.explain_failure(views, result)
    if min_confidence is None or (result.confidence is not None and result.confidence >= min_confidence):
        return None
    found = "unknown" if result.confidence is None else f"{result.confidence:.3f}"
    return f"the confidence is {found}, below --min-confidence {min_confidence:g}"


def as_text(views: TwoViews, result: FoundGeometry) -> str:
    """Return a successful answer as text."""
    matches = views.matches
    lines = _models(result)
    if isinstance(result, GeometryResult):
        lines.append(f"  geometry      {result.kind.replace('_', ' ')}: {result.reason}")
    elif result.degeneracy is not None:
        lines.append("  geometry      a plane or a camera that only rotated: this matrix is one of many")
    count = len(matches.points1)
    lines.append(f"  inliers       {result.num_inliers} of {count} matches, {100 * result.num_inliers / count:.0f} %")
    estimated = result.epipolar if isinstance(result, GeometryResult) else result
    lines += two_views.describe_refinement(estimated, "  refined       ")
    if result.confidence is not None:
        warning = "" if result.confidence > 0.5 else ", low: better not rely on it"
        lines.append(f"  confidence    {result.confidence:.3f}{warning}{_rotation_confidence(result)}")
    lines += _deviations(result)
    for rival in result.rivals:
        lines.append(f"  rival         another motion explains {100 * rival.share:.0f} % of the matches instead")
    parallax = result.parallax_px
    if parallax is not None:
        note = "" if parallax > result.max_error_px else ": the cameras hardly moved, so the translation is meaningless"
        lines.append(f"  parallax      {parallax:.1f} px{note}")
    given, found = (matches.camera1, matches.camera2), two_views.found_cameras(views, result)
    for number, known in enumerate(zip(given, found, views.camera_sources, strict=True), 1):
        advice = f"; {IF_KNOWN}" if known[-1] == "estimated" and not views.fundamental else ""
        lines.append(f"  camera {number}      {describe_camera(*known)}{advice}")
    times = {**views.seconds, "estimate": result.elapsed_s}
    lines.append(f"  time          {', '.join(f'{name} {1e3 * value:.0f} ms' for name, value in times.items())}")
    return "\n".join(lines)


def _rotation_confidence(result: FoundGeometry) -> str:
    """Return the confidence of the rotation of a pose as text, to follow that of the pose."""
    if not isinstance(result, GeometryResult) or result.t is None or result.rotation_confidence is None:
        return ""
    return f"; {result.rotation_confidence:.3f} for the rotation"


def _deviations(result: FoundGeometry) -> list[str]:
    """Return the standard deviations of a pose as lines of text, if they are known."""
    if not isinstance(result, GeometryResult) or result.t is None:
        return []
    if result.rotation_deviation_deg is None or result.direction_deviation_deg is None:
        return []
    return [
        f"  deviations    rotation {result.rotation_deviation_deg:.2f}°, direction of the translation "
        f"{result.direction_deviation_deg:.2f}°, from the noise of the matches only"
    ]


def _models(result: FoundGeometry) -> list[str]:
    """Return the matrices of a successful answer as lines of text, each with its meaning."""
    if result.F is not None and (isinstance(result, FundamentalResult) or result.kind == "fundamental"):
        return ["Fundamental matrix of pixels, x2^T F x1 = 0:", _matrix(result.F, "{:14.6e}")]
    assert isinstance(result, GeometryResult)
    lines = []
    if result.H is not None:
        lines += ["Homography of pixels, x2 ~ H x1:", _matrix(result.H, "{:14.6e}")]
    if result.kind == "rotation" and result.R is not None:
        lines += ["Rotation of the camera, x2 ~ R x1:", _matrix(result.R, "{:10.6f}")]
        lines.append(f"  rotation      {rotation_angle_deg(result.R):.3f}°")
    elif result.R is not None and result.t is not None:
        lines += ["Pose of camera 2 from camera 1, x2 = R x1 + t:", format_pose(result.R, result.t)]
    for R, t in result.alternatives:
        also = "Another pose explains the matches as well:" if result.R is not None else "A pose that the plane allows:"
        lines += [also, format_pose(R, t)]
    return lines


def format_pose(R: Array, t: Array) -> str:
    """Return a pose as text: [R t], the angle and the direction."""
    direction = ", ".join(f"{value:.4f}" for value in t)
    return (
        _matrix(np.c_[R, t], "{:10.6f}") + f"\n  rotation      {rotation_angle_deg(R):.3f}°"
        f"\n  translation   ({direction}), its length is unknown"
    )


def _matrix(matrix: Any, form: str) -> str:
    return "\n".join("  [" + " ".join(form.format(value) for value in row) + " ]" for row in matrix)


def as_json(views: TwoViews, result: FoundGeometry) -> dict[str, Any]:
    """Return an answer for programs: its `to_dict`, and the entries of the command (docs/pose.md)."""
    given = (camera and to_plain(camera) for camera in (views.matches.camera1, views.matches.camera2))
    command = {
        "camera_sources": list(views.camera_sources),
        **dict(zip(("camera1", "camera2"), given, strict=True)),
        "note": views.note,
        "seconds": {**views.seconds, "estimate": result.elapsed_s},
        "version": caransac.__version__,
    }
    return result.to_dict() | {"command": command}

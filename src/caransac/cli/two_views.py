"""Options of the estimation for all commands, and the steps that `caransac pose` and `caransac view` share."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

import caransac
from caransac.api.result_fields import MIRRORED
from caransac.camera import Camera
from caransac.cli.camera_arguments import source_text
from caransac.cli.inputs import TwoViews
from caransac.options import MaxError, MethodName, Options
from caransac.policy import DEFAULT_POLICY
from caransac.results import FundamentalResult, GeometryResult, PixelResult
from caransac.viewer import write_report
from caransac.viewer.report import MAX_IMAGE_PX

FoundGeometry = GeometryResult | FundamentalResult  # results that the commands show


def add_options(parser: argparse.ArgumentParser, defaults: Options) -> argparse._ArgumentGroup:
    """Add the group of options of the estimation and return it, so that a command can add its own."""
    estimation = parser.add_argument_group("estimation")
    estimation.add_argument(
        "--method", choices=get_args(MethodName), default=defaults.method, help="estimator (default: %(default)s)"
    )
    estimation.add_argument(
        "--max-error",
        type=_max_error,
        default=defaults.max_error_px,
        metavar="PX",
        help="inlier threshold in pixels; auto estimates it from the noise of the matches (default: %(default)s)",
    )
    estimation.add_argument(
        "--rounds",
        type=int,
        default=defaults.rounds,
        metavar="N",
        help=f"maximum number of rounds of {defaults.samples_per_round} hypotheses (default: %(default)s)",
    )
    estimation.add_argument(
        "--seed", type=int, default=defaults.seed, metavar="N", help="seed of the random numbers (default: %(default)s)"
    )
    return estimation


def _max_error(text: str) -> MaxError:
    return "auto" if text == "auto" else float(text)


def read_options(arguments: argparse.Namespace, *, keep_trace: bool = False) -> Options:
    """Return the options from the arguments of `add_options`."""
    return Options(
        method=arguments.method,
        max_error_px=arguments.max_error,
        rounds=arguments.rounds,
        seed=arguments.seed,
        keep_trace=keep_trace,
    )


def estimate(views: TwoViews, options: Options) -> FoundGeometry:
    """Estimate the geometry, or only the fundamental matrix if `views` asks for it."""
    matches = views.matches
    size1, size2 = views.image_sizes or (None, None)
    if not views.fundamental:
        return caransac.estimate(**matches.arguments(), same_camera=views.same_camera, options=options)
    without = replace(matches, camera1=None, camera2=None, image_size1=size1, image_size2=size2)
    return caransac.estimate_fundamental(**without.arguments(), same_camera=views.same_camera, options=options)


def rely_on(result: FoundGeometry) -> FoundGeometry:
    """Return the answer, or a failure if it is a fundamental matrix of low confidence, as in `caransac.estimate`.

    The report of the viewer shows the rejected answer, so that people can see why.
    """
    uncertain = result.confidence is not None and result.confidence < DEFAULT_POLICY.min_confidence
    if not (isinstance(result, FundamentalResult) and result.success and uncertain):
        return result
    nothing = np.zeros_like(result.inliers)
    failed = replace(result, success=False, stop_reason="unsure", inliers=nothing, num_inliers=0, consensus=0.0)
    return replace(failed, F=None, camera1=None, camera2=None)


def found_cameras(views: TwoViews, result: FoundGeometry) -> tuple[Camera | None, Camera | None]:
    """Return the cameras of the answer, as far as they are known.

    The cameras of a pose are refined with it. The cameras of a fundamental matrix are used only if none are given.
    """
    given = views.matches.camera1, views.matches.camera2
    if isinstance(result, GeometryResult):
        return result.camera1 or given[0], result.camera2 or given[1]
    return given[0] or result.camera1, given[1] or result.camera2


def write_html(path: Path, views: TwoViews, result: FoundGeometry, max_image_px: int | None = MAX_IMAGE_PX) -> Path:
    """Write the viewer's report. `max_image_px` limits the longer side of its images; None keeps their size."""
    matches = views.matches
    write_report(
        path,
        result,
        matches.points1,
        matches.points2,
        camera1=matches.camera1,
        camera2=matches.camera2,
        camera_source1=source_text(views.camera_sources[0]),
        camera_source2=source_text(views.camera_sources[1]),
        image1=views.photos and views.photos[0].pixels,
        image2=views.photos and views.photos[1].pixels,
        size1=views.image_sizes and views.image_sizes[0],
        size2=views.image_sizes and views.image_sizes[1],
        scores=matches.scores,
        title=" and ".join(photo.path.name for photo in views.photos or ()),
        max_image_px=max_image_px,
    )
    return path


def explain_failure(views: TwoViews, result: FoundGeometry) -> str:
    """Explain why there is no model, and what to do."""
    model = "fundamental matrix" if views.fundamental else "pose"
    if isinstance(result, GeometryResult) and result.reason == MIRRORED:
        return MIRRORED
    if result.stop_reason == "unsure":
        cameras = "" if views.fundamental else ", and are the cameras right"
        best = result.epipolar if isinstance(result, GeometryResult) else result
        return (
            f"no {model if views.fundamental else 'geometry'} explains the {len(views.matches.points1)} matches with "
            f"confidence (the best is right with probability {best.confidence or 0:.2f}): do the images show the "
            f"same scene{cameras}?"
        )
    least = 7 if views.fundamental and views.image_sizes is None else 5
    count = len(views.matches.points1)
    if result.stop_reason == "too_few_points" and count >= least:
        return f"no {model}: the lens distortion leaves fewer than {least} of the {count} matches; check the camera"
    if result.stop_reason == "too_few_points":
        return f"no {model}: {count} matches, but it takes {least} or more; use images that overlap more"
    if result.stop_reason == "degenerate":
        return (
            f"no {model}: the {count} matches are duplicates or lie on one line, so they do not determine it; use "
            "matches from larger parts of the images"
        )
    return f"no {model} explains more of the {count} matches than chance: do the images show the same scene?"


def describe_refinement(result: PixelResult, name: str) -> list[str]:
    """Return a line of text that begins with `name`: how many matches were refined, and the noise before and after.

    Without photographs, return none.
    """
    if result.num_refined is None:
        return []
    if result.num_refined == 0:
        return [f"{name}none: in the images, the patches around too few matches agree"]
    noise = ""
    if result.noise_px is not None and result.noise_before_px is not None:
        noise = f"; noise {result.noise_before_px:.2f} px before, {result.noise_px:.2f} px after"
    return [f"{name}{result.num_refined} matches in the images{noise}"]

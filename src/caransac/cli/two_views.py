"""What `caransac pose` and `caransac view` share: images or matches in, an estimate out."""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

import caransac
from caransac import images
from caransac.camera import Camera
from caransac.geometry import homogeneous
from caransac.images import FeatureKind, Image
from caransac.matches import Matches, read_matches
from caransac.options import MethodName, Options, ScoreKind
from caransac.results import AnyResult, RelativePoseResult


class Photo(NamedTuple):
    """An image and its file."""

    path: Path
    pixels: Image


@dataclass(frozen=True, eq=False)
class TwoViews:
    """What is known of two views before the estimation.

    Attributes:
        photos: the images, or None where there are only matches.
        matches: their correspondences, with the cameras as far as they are known.
        origins: where each camera comes from: "camera", "focal", "file", "exif" or "unknown".
        note: why there will be no pose, and what to do about it; None where both cameras are known.
        seconds: how long reading and matching took.
    """

    photos: tuple[Photo, Photo] | None
    matches: Matches
    origins: tuple[str, str]
    note: str | None
    seconds: dict[str, float]


def usage(command: str) -> str:
    """The two ways to call a command."""
    return f"caransac {command} IMAGE1 IMAGE2 [options]\n       caransac {command} --matches FILE [options]"


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what to estimate from, and how."""
    defaults = Options()
    parser.add_argument("image1", nargs="?", type=Path, metavar="IMAGE1", help="first image")
    parser.add_argument("image2", nargs="?", type=Path, metavar="IMAGE2", help="second image")

    matching = parser.add_argument_group("matches")
    matching.add_argument(
        "--features",
        choices=get_args(FeatureKind),
        default="rootsift",
        help="what to match the images by (default: %(default)s)",
    )
    matching.add_argument(
        "--max-features",
        type=int,
        default=images.MAX_FEATURES,
        metavar="N",
        help="keypoints an image at most (default: %(default)s)",
    )
    matching.add_argument(
        "--matches",
        type=Path,
        metavar="FILE",
        help="matches to use instead: .npz, .txt with lines x1 y1 x2 y2 [score], or .h5; images are then optional",
    )
    matching.add_argument("--key", metavar="NAME", help="which pair of an .h5 file")
    matching.add_argument(
        "--score-kind",
        choices=get_args(ScoreKind),
        help="what the scores of --matches are: ratio, lower is better, or confidence, higher is better (default: what "
        "the file says, else ratio)",
    )

    cameras = parser.add_argument_group(
        "cameras",
        "Given once for both images, or twice, for one each; else they come from the\nfile of matches or the images' "
        "EXIF data. Without a focal length the answer is\na fundamental matrix, not a pose.",
    )
    known = cameras.add_mutually_exclusive_group()
    known.add_argument(
        "--camera",
        action="append",
        default=[],
        metavar="CAMERA",
        help="f,cx,cy or fx,fy,cx,cy or COLMAP's MODEL:WIDTHxHEIGHT:params, in pixels; the top-left pixel's centre "
        "is (0, 0), so take one half off cx and cy from COLMAP",
    )
    known.add_argument(
        "--focal",
        action="append",
        type=float,
        default=[],
        metavar="F",
        help="focal length in pixels; the principal point is the image's middle",
    )

    estimation = parser.add_argument_group("estimation")
    estimation.add_argument(
        "--method", choices=get_args(MethodName), default=defaults.method, help="(default: %(default)s)"
    )
    estimation.add_argument(
        "--max-error",
        type=float,
        default=defaults.max_error_px,
        metavar="PX",
        help="distance in pixels from which on a match supports nothing (default: %(default)s)",
    )
    estimation.add_argument(
        "--rounds",
        type=int,
        default=defaults.rounds,
        metavar="N",
        help=f"rounds of {defaults.samples_per_round} hypotheses, at most (default: %(default)s)",
    )
    estimation.add_argument("--seed", type=int, default=defaults.seed, metavar="N", help="(default: %(default)s)")


def read_options(arguments: argparse.Namespace, keep_trace: bool) -> Options:
    """The options that the arguments describe."""
    return Options(
        method=arguments.method,
        max_error_px=arguments.max_error,
        rounds=arguments.rounds,
        seed=arguments.seed,
        keep_trace=keep_trace,
    )


def read_views(arguments: argparse.Namespace) -> TwoViews:
    """Read the images, their matches and their cameras; say on stderr when a camera stays unknown."""
    started = time.perf_counter()
    photos = _read_photos(arguments)
    matches = None if arguments.matches is None else read_matches(arguments.matches, arguments.key)
    seconds = {"read": time.perf_counter() - started}

    stored = (None, None) if matches is None else (matches.camera1, matches.camera2)
    camera1, origin1 = _find_camera(arguments, 0, photos and photos[0], stored[0])
    camera2, origin2 = _find_camera(arguments, 1, photos and photos[1], stored[1])
    note = _missing_cameras(photos, (origin1, origin2))
    if note is not None:
        print(f"caransac: {note}", file=sys.stderr)

    if matches is None:
        assert photos is not None  # or reading them had failed
        started = time.perf_counter()
        pixels = (photo.pixels for photo in photos)
        found = images.match_images(*pixels, features=arguments.features, max_features=arguments.max_features)
        matches = Matches(*found)
        seconds["match"] = time.perf_counter() - started
    score_kind = arguments.score_kind or matches.score_kind
    matches = replace(matches, score_kind=score_kind, camera1=camera1, camera2=camera2)
    return TwoViews(photos, matches, (origin1, origin2), note, seconds)


def _read_photos(arguments: argparse.Namespace) -> tuple[Photo, Photo] | None:
    """The two images, or None when the matches come from a file and there are none."""
    if arguments.matches is None:
        for option, value in (("--score-kind", arguments.score_kind), ("--key", arguments.key)):
            if value is not None:
                raise ValueError(f"{option} is about --matches FILE, which is missing")
    if arguments.image1 is None and arguments.matches is not None:
        return None
    if arguments.image1 is None:
        raise ValueError("give two images, or --matches FILE")
    if arguments.image2 is None:
        raise ValueError("one image is not enough: give two")
    first, second = (Photo(path, images.read_image(path)) for path in (arguments.image1, arguments.image2))
    return first, second


def _find_camera(
    arguments: argparse.Namespace, number: int, photo: Photo | None, stored: Camera | None
) -> tuple[Camera | None, str]:
    """The camera of view 0 or 1, and where it comes from."""
    for option, values in (("--camera", arguments.camera), ("--focal", arguments.focal)):
        if len(values) > 2:
            raise ValueError(f"{option} was given {len(values)} times; once is for both images, twice for one each")
    if arguments.camera:
        return _fit(Camera.from_text(arguments.camera[min(number, len(arguments.camera) - 1)]), photo), "camera"
    if arguments.focal:
        if photo is None:
            raise ValueError("--focal needs the images, for their size; without them give --camera f,cx,cy")
        focal = arguments.focal[min(number, len(arguments.focal) - 1)]
        if not 0 < focal < math.inf:
            raise ValueError(f"--focal must be positive, not {focal:g}")
        return images.centred_camera(focal, photo.pixels), "focal"
    if stored is not None:
        return _fit(stored, photo), "file"
    exif = None if photo is None else images.focal_from_exif(photo.path)
    if photo is None or exif is None:
        return None, "unknown"
    return images.centred_camera(exif, photo.pixels), "exif"


def _fit(camera: Camera, photo: Photo | None) -> Camera:
    """The camera with the size of its image; a ValueError if it was made for another."""
    if photo is None:
        return camera
    height, width = photo.pixels.shape[:2]
    if (camera.width or width, camera.height or height) != (width, height):
        raise ValueError(f"the camera is for {camera.width}x{camera.height}, but {photo.path} is {width}x{height}")
    return replace(camera, width=width, height=height)


def _missing_cameras(photos: tuple[Photo, Photo] | None, origins: tuple[str, str]) -> str | None:
    """Why there will be no pose, and what to do about it; None when there will be one."""
    unknown = [number for number, origin in enumerate(origins) if origin == "unknown"]
    if not unknown:
        return None
    if photos is None:
        return "the cameras are unknown: estimating the fundamental matrix; for a pose give --camera"
    names = " and ".join(photos[number].path.name for number in unknown)
    return (
        f"no EXIF focal length in {names}: estimating the fundamental matrix; for a pose give --focal (in pixels) or "
        "--camera"
    )


def estimate(views: TwoViews, options: Options) -> AnyResult:
    """The relative pose, or the fundamental matrix where a camera is unknown."""
    matches = views.matches
    points, scores, kind = (matches.points1, matches.points2), matches.scores, matches.score_kind
    if matches.camera1 is None or matches.camera2 is None:
        return caransac.estimate_fundamental(*points, scores=scores, score_kind=kind, options=options)
    cameras = matches.camera1, matches.camera2
    return caransac.estimate_relative_pose(*points, *cameras, scores=scores, score_kind=kind, options=options)


def parallax_px(views: TwoViews, result: AnyResult) -> float | None:
    """How far the inliers' points in image 2 lie from where the rotation alone would put them: the median, in pixels.

    A translation that moves the points by less than they are uncertain has no direction to speak of. None without a
    pose.
    """
    matches = views.matches
    if not isinstance(result, RelativePoseResult) or result.R is None:
        return None
    assert matches.camera1 is not None and matches.camera2 is not None  # a pose took both
    turned = homogeneous(matches.camera1.pixels_to_rays(matches.points1[result.inliers])) @ result.R.T
    seen = turned[:, 2] > 0
    if not seen.any():
        return None
    moved = matches.camera2.rays_to_pixels(turned[seen, :2] / turned[seen, 2:]) - matches.points2[result.inliers][seen]
    return float(np.median(np.linalg.norm(moved, axis=1)))


def check_outputs(arguments: argparse.Namespace, **outputs: Path | None) -> None:
    """Raise a ValueError for an output, by its option's name, that would replace an input."""
    inputs = [path.resolve() for path in (arguments.image1, arguments.image2, arguments.matches) if path is not None]
    for option, path in outputs.items():
        if path is not None and path.resolve() in inputs:
            raise ValueError(f"--{option} {path} is an input; choose another place")


def write_html(path: Path, views: TwoViews, result: AnyResult, options: Options) -> Path:
    """Write the viewer's report."""
    from caransac.viewer import write_report

    matches = views.matches
    return write_report(
        path,
        result,
        matches.points1,
        matches.points2,
        camera1=matches.camera1,
        camera2=matches.camera2,
        image1=views.photos and views.photos[0].pixels,
        image2=views.photos and views.photos[1].pixels,
        scores=matches.scores,
        max_error_px=options.max_error_px,
        title=" and ".join(photo.path.name for photo in views.photos or ()),
    )


def explain_failure(views: TwoViews, result: AnyResult) -> str:
    """Why there is no model, and what to do about it."""
    model, least = ("pose", 5) if views.note is None else ("fundamental matrix", 7)
    count = len(views.matches.points1)
    if result.stop_reason == "too_few_points" and count >= least:
        return f"no {model}: the lens distortion leaves fewer than {least} of the {count} matches; check the camera"
    if result.stop_reason == "too_few_points":
        return f"no {model}: {count} matches, but it takes {least} or more; use images that overlap more"
    if result.stop_reason == "degenerate":
        return (
            f"no {model}: the {count} matches repeat each other or lie on one line, which determines none; use more of "
            "the images"
        )
    return f"no {model} explains more of the {count} matches than chance: do the images show the same scene?"

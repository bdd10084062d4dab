"""What `caransac pose` and `caransac view` read: two images or a file of their matches, and the cameras."""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, get_args

from caransac import images
from caransac.camera import Camera
from caransac.images import FeatureKind, Image
from caransac.matches import Matches, read_matches
from caransac.options import ScoreKind


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
        camera_sources: where each camera comes from: "camera", "focal", "file", "exif" or "unknown".
        note: why there will be no pose, and what to do about it; None where both cameras are known.
        seconds: how long reading and matching took.
    """

    photos: tuple[Photo, Photo] | None
    matches: Matches
    camera_sources: tuple[str, str]
    note: str | None
    seconds: dict[str, float]


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, *, about: str, text: str, examples: str
) -> argparse.ArgumentParser:
    """Add a command that reads two views, with the options that say what they are.

    Args:
        commands: where to add it.
        name: of the command.
        about: one line, for the list of commands.
        text: what the command does, for its own help.
        examples: how to call it.
    """
    parser = commands.add_parser(
        name,
        help=about,
        usage=f"caransac {name} IMAGE1 IMAGE2 [options]\n       caransac {name} --matches FILE [options]",
        description=text,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("image1", nargs="?", type=Path, metavar="IMAGE1", help="first image")
    parser.add_argument("image2", nargs="?", type=Path, metavar="IMAGE2", help="second image")
    _add_matching(parser)
    _add_cameras(parser)
    return parser


def _add_matching(parser: argparse.ArgumentParser) -> None:
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
        help="keypoints per image at most (default: %(default)s)",
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


def _add_cameras(parser: argparse.ArgumentParser) -> None:
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


def read_views(arguments: argparse.Namespace) -> TwoViews:
    """Read the images, their matches and their cameras; say on stderr when a camera stays unknown."""
    started = time.perf_counter()
    photos = _read_photos(arguments)
    matches = None if arguments.matches is None else read_matches(arguments.matches, arguments.key)
    seconds = {"read": time.perf_counter() - started}

    stored = (None, None) if matches is None else (matches.camera1, matches.camera2)
    camera1, source1 = _find_camera(arguments, 0, photos and photos[0], stored[0])
    camera2, source2 = _find_camera(arguments, 1, photos and photos[1], stored[1])
    note = _missing_cameras(photos, (source1, source2))
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
    return TwoViews(photos, matches, (source1, source2), note, seconds)


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


def _missing_cameras(photos: tuple[Photo, Photo] | None, sources: tuple[str, str]) -> str | None:
    """Why there will be no pose, and what to do about it; None when there will be one."""
    unknown = [number for number, source in enumerate(sources) if source == "unknown"]
    if not unknown:
        return None
    if photos is None:
        return "the cameras are unknown: estimating the fundamental matrix; for a pose give --camera"
    names = " and ".join(photos[number].path.name for number in unknown)
    return (
        f"no EXIF focal length in {names}: estimating the fundamental matrix; for a pose give --focal (in pixels) or "
        "--camera"
    )


def check_outputs(arguments: argparse.Namespace, **outputs: Path | None) -> None:
    """Raise a ValueError for an output, by its option's name, that would replace an input."""
    inputs = [path.resolve() for path in (arguments.image1, arguments.image2, arguments.matches) if path is not None]
    for option, path in outputs.items():
        if path is not None and path.resolve() in inputs:
            raise ValueError(f"--{option} {path} is an input; choose another place")

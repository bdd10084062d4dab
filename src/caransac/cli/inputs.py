"""Input of `caransac pose` and `caransac view`: two images or a file of their matches, and the cameras."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from caransac._support.files import check_no_input
from caransac._support.untrusted import read_stream
from caransac.cli import camera_arguments
from caransac.cli.camera_arguments import CameraSource, KnownCamera, Photo, Size
from caransac.cli.quiet import say
from caransac.io import images
from caransac.io.images import FeatureKind, installed_features
from caransac.io.matches import Matches, parse_matches, read_matches
from caransac.options import ScoreKind


@dataclass(frozen=True, eq=False)
class TwoViews:
    """Two views before the estimation.

    Attributes:
        photos: the images, or None if there are only matches.
        matches: the matches, with the known cameras or, for unknown cameras, the image sizes; and the images, if the
            matches are to be refined in them.
        image_sizes: sizes of both images, or None if one is unknown.
        camera_sources: source of each camera.
        same_camera: whether one camera took both images; None to decide.
        fundamental: whether to estimate a fundamental matrix, because the user wants it or because a pose needs more
            information.
        note: note about unknown cameras and how to give them, or None if both are known.
        seconds: duration of reading and matching in seconds.
    """

    photos: tuple[Photo, Photo] | None
    matches: Matches
    image_sizes: tuple[Size, Size] | None
    camera_sources: tuple[CameraSource, CameraSource]
    same_camera: bool | None
    fundamental: bool
    note: str | None
    seconds: dict[str, float]


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, *, about: str, text: str, examples: str
) -> argparse.ArgumentParser:
    """Add a command that reads two views, with the options about its input.

    Args:
        commands: parsers of all commands.
        name: name of the command.
        about: one line for the list of commands.
        text: description for the help of the command.
        examples: examples of calls.
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
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors: no summary, no notes")
    _add_matching(parser)
    camera_arguments.add_options(parser)
    return parser


class _Offered(tuple[str, ...]):
    """Kinds of features. All are accepted; ``--help`` lists those of the installed OpenCV."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(installed_features())


def _add_matching(parser: argparse.ArgumentParser) -> None:
    matching = parser.add_argument_group("matches")
    matching.add_argument(
        "--features",
        choices=_Offered(get_args(FeatureKind)),
        default="rootsift",
        help="the kind of keypoints to match (default: %(default)s)",
    )
    matching.add_argument(
        "--max-features",
        type=int,
        default=images.MAX_FEATURES,
        metavar="N",
        help="maximum number of keypoints per image (default: %(default)s)",
    )
    matching.add_argument(
        "--max-size",
        type=int,
        default=images.MAX_SIZE,
        metavar="PX",
        help="reduce larger images to this many pixels on the longer side before detecting keypoints; 0 for the "
        "original size. Points, cameras and --max-error always refer to the original images (default: %(default)s)",
    )
    matching.add_argument(
        "--matches",
        type=Path,
        metavar="FILE",
        help="use the matches in this file: .npz, .txt with lines x1 y1 x2 y2 [score], or .h5; - reads any of these "
        "from standard input. The images are then optional",
    )
    matching.add_argument("--key", metavar="NAME", help="name of the pair in an .h5 file")
    matching.add_argument(
        "--score-kind",
        choices=get_args(ScoreKind),
        help="kind of the scores of --matches: ratio (lower is better) or confidence (higher is better) (default: the "
        "kind in the file, or ratio)",
    )
    matching.add_argument(
        "--no-refine",
        action="store_true",
        help="estimate from the keypoints alone, without refining the matches in the images",
    )


def read_views(arguments: argparse.Namespace) -> TwoViews:
    """Read the images, their matches and their cameras. Report unknown cameras on stderr."""
    started = time.perf_counter()
    photos = _read_photos(arguments)
    matches = _read_matches(arguments)
    seconds = {"read": time.perf_counter() - started}

    known1 = camera_arguments.find_camera(arguments, 0, photos and photos[0], matches)
    known2 = camera_arguments.find_camera(arguments, 1, photos and photos[1], matches)
    sources = _sources(known1, known2)
    note = None if arguments.fundamental else camera_arguments.explain_unknown(photos, sources)
    if note is not None and not arguments.quiet:
        say(f"caransac: {note}")

    if matches is None:
        assert photos is not None  # otherwise reading them has failed
        started = time.perf_counter()
        pixels = (photo.pixels for photo in photos)
        matches = Matches(
            *images.match_images(
                *pixels,
                features=arguments.features,
                max_features=arguments.max_features,
                max_size=arguments.max_size,
            )
        )
        seconds["match"] = time.perf_counter() - started
    score_kind = arguments.score_kind or matches.score_kind
    return TwoViews(
        photos,
        replace(
            matches,
            score_kind=score_kind,
            camera1=known1.camera,
            camera2=known2.camera,
            image_size1=known1.size if known1.camera is None else None,
            image_size2=known2.size if known2.camera is None else None,
            images=None if photos is None or arguments.no_refine else (photos[0].pixels, photos[1].pixels),
        ),
        image_sizes=None if known1.size is None or known2.size is None else (known1.size, known2.size),
        camera_sources=sources,
        same_camera=arguments.same_camera,
        fundamental=arguments.fundamental or "unknown" in sources,
        note=note,
        seconds=seconds,
    )


def _sources(known1: KnownCamera, known2: KnownCamera) -> tuple[CameraSource, CameraSource]:
    """Return the sources of the cameras. A camera is not estimated if the other one is unknown."""
    first, second = known1.source, known2.source
    if "unknown" not in (first, second):
        return first, second
    return "unknown" if first == "estimated" else first, "unknown" if second == "estimated" else second


def _read_photos(arguments: argparse.Namespace) -> tuple[Photo, Photo] | None:
    """Return the two images, or None if only a file of matches is given."""
    if arguments.matches is None:
        for option, value in (("--score-kind", arguments.score_kind), ("--key", arguments.key)):
            if value is not None:
                raise ValueError(f"{option} needs --matches FILE, which is missing")
    if arguments.image1 is None and arguments.matches is not None:
        return None
    if arguments.image_size:
        raise ValueError("--image-size is only for --matches FILE without images: images have their own size")
    if arguments.image1 is None:
        raise ValueError("give two images, or --matches FILE")
    if arguments.image2 is None:
        raise ValueError("one image is not enough: give two")
    first, second = (Photo(path, images.read_image(path)) for path in (arguments.image1, arguments.image2))
    return first, second


def _read_matches(arguments: argparse.Namespace) -> Matches | None:
    """Return the matches of --matches, or None without it."""
    if arguments.matches is None:
        return None
    if str(arguments.matches) == "-":
        if sys.stdin is None:
            raise ValueError("--matches - reads standard input, which is closed")
        return parse_matches(read_stream(sys.stdin.buffer, "standard input"), arguments.key)
    return read_matches(arguments.matches, arguments.key)


def check_outputs(arguments: argparse.Namespace, **outputs: Path | None) -> None:
    """Raise a ValueError if an output, given by the name of its option, would replace an input."""
    inputs = arguments.image1, arguments.image2, arguments.matches
    for option, path in outputs.items():
        if path is not None:
            check_no_input(path, inputs, f"--{option}")

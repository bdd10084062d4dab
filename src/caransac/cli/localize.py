"""caransac localize: poses of images in a COLMAP model."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from caransac._support.files import check_writable, replacing
from caransac._support.interrupts import check
from caransac._support.progress import Progress
from caransac._support.untrusted import escape_controls, parse_json, read_text
from caransac.api import estimate_absolute_pose
from caransac.camera import Camera
from caransac.camera_words import describe_focal
from caransac.cli import two_views
from caransac.cli.quiet import add_quiet, note, say
from caransac.cli.two_views import describe_refinement
from caransac.geometry import quaternion_from_rotation
from caransac.io.images import Image, camera_from_exif, detect, read_image
from caransac.options import Options
from caransac.results import AbsolutePoseResult
from caransac.verification.colmap_model import ColmapModel, Features, in_colmap_pixels
from caransac.verification.model_photographs import ModelPhotographs

FeatureSource = Literal["database", "image"]
MIN_CONFIDENCE = 0.5
DESCRIPTION = """\
Estimate the poses x = R X + t of images in a COLMAP model, each with a
confidence. SIFT features are detected in the image (needs the extra 'images').
The features of the database are used if it has an image of exactly this path
and of the same size; run the command in COLMAP's image folder. The answer names
the source of the features. With --images, the keypoints are refined in the
photographs of the model, and the pose is estimated again from them. The centre of the top-left pixel is (0, 0) in
--camera, as in all commands, but (0.5, 0.5) in the cameras of the answers, as
in COLMAP. The exit code is 1 if an image was not localised, because there is no
pose or its confidence is below --min-confidence, and 2 for a wrong call or
file."""
EXAMPLES = """\
examples:
  caransac localize sparse/0 query.jpg             database.db next to sparse
  caransac localize sparse/0 query.jpg --database db.db --html query.html
  caransac localize sparse/0 query.jpg --images images
  caransac localize sparse/0 query.jpg --camera 1200,640,480±5% --json
  caransac localize sparse/0 queries/*.jpg --out poses.jsonl

With --out, the answer for each image is written immediately. To continue an
interrupted run, give the same command again.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "localize",
        help="estimate the poses of images in a COLMAP model",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder of the model, with cameras and points3D")
    parser.add_argument("queries", nargs="+", type=Path, metavar="IMAGE", help="images to localise")
    add_quiet(parser)
    parser.add_argument(
        "--database",
        type=Path,
        metavar="FILE",
        help="COLMAP's database of the model (default: database.db in the folder of the model or above it)",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="folder of the photographs that the model was made from: refine the points of IMAGE in them",
    )
    parser.add_argument(
        "--camera",
        type=Camera.from_text,
        metavar="CAMERA",
        help="camera of the images, as f,cx,cy or MODEL:WIDTHxHEIGHT:params, followed by ±5%% if the focal length is "
        "uncertain (default: the first that is available: the image's camera in the database, with the parameters of "
        "the model; the only camera of the model; a camera from EXIF data; an unknown camera)",
    )
    two_views.add_options(parser, Options()).add_argument(
        "--min-confidence",
        type=float,
        default=MIN_CONFIDENCE,
        metavar="P",
        help="minimum confidence; poses below it are only in --json and --out, and the exit code is 1 (default: "
        "%(default)s)",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print each answer as one line of JSON")
    output.add_argument(
        "--out", type=Path, metavar="FILE", help="write, or continue, a file with one line of JSON per image"
    )
    output.add_argument("--html", type=Path, metavar="FILE", help="write a page that shows the inliers of one image")
    parser.set_defaults(run=localize, how_to_continue="the same command continues, with --out")


def localize(arguments: argparse.Namespace) -> int:
    """Localise all images and return the exit code."""
    if not 0 <= arguments.min_confidence <= 1:
        raise ValueError(f"--min-confidence must be from 0 to 1, not {arguments.min_confidence:g}")
    if arguments.html is not None and len(arguments.queries) != 1:
        raise ValueError("--html is for one image")
    done = _read_done(arguments.out)
    names = [str(path) for path in arguments.queries]
    pending = [path for path in arguments.queries if str(path) not in done]
    sure = [done[name] for name in names if name in done]
    if len(pending) < len(names):
        note(arguments, f"{len(names) - len(pending)} of {len(names)} images were done before")
    if pending:
        model = ColmapModel.read(arguments.model, _database(arguments))
        photographs = None
        if arguments.images is not None:
            photographs = ModelPhotographs.find(model, arguments.model, arguments.images)
        options = two_views.read_options(arguments)
        with Progress(quiet=arguments.quiet or len(pending) == 1) as progress:
            for number, path in enumerate(pending, 1):
                check()
                sure.append(_localize_one(path, model, photographs, options, arguments))
                progress.show("localise", number, len(pending), unit="images")
    return 0 if all(sure) else 1


def _localize_one(
    path: Path,
    model: ColmapModel,
    photographs: ModelPhotographs | None,
    options: Options,
    arguments: argparse.Namespace,
) -> bool:
    """Localise an image and report the answer. Return True if it is reliable."""
    given = None if arguments.camera is None else in_colmap_pixels(arguments.camera)
    image = read_image(path)
    features, camera, source = _look_at(path, image, model, given)
    points2d, rows, ratios = model.match(features)
    found = estimate_absolute_pose(
        points2d,
        model.points3d[rows],
        camera,
        scores=ratios,
        score_kind="ratio",
        refine=None if photographs is None else partial(photographs.refine, image, points2d, rows),
        options=options,
    )
    reliable = found.success and (found.confidence is None or found.confidence >= arguments.min_confidence)
    entry = {"image": str(path), "reliable": reliable, "features": source} | found.to_dict()
    line = json.dumps(entry, allow_nan=False)
    if arguments.json:
        print(line, flush=True)
    elif not arguments.quiet:
        print(as_text(path, found, reliable, source), flush=True)
    if arguments.out is not None:
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    if arguments.html is not None:
        _write_html(arguments.html, path, image, found)
    if not found.success:
        say(f"caransac: {path}: no pose: {found.stop_reason.replace('_', ' ')}")
    return reliable


def _look_at(
    path: Path, image: Image, model: ColmapModel, given: Camera | None
) -> tuple[Features, Camera, FeatureSource]:
    """Return the features of an image, its camera in COLMAP's pixel convention, and the source of the features.

    The database knows an image only by its path. A picture of another size under this path is another picture.
    """
    height, width = image.shape[:2]
    stored = model.stored(path.as_posix())
    if stored is not None and (stored[1].width, stored[1].height) == (width, height):
        return stored[0], given or stored[1], "database"
    points, vectors = detect(image)
    features = Features(points + 0.5, vectors)
    if given is not None:
        return features, given, "image"
    if model.camera is not None and (model.camera.width, model.camera.height) == (width, height):
        return features, model.camera, "image"
    camera = camera_from_exif(path, image) or Camera.of_unknown_focal(width, height)
    return features, in_colmap_pixels(camera), "image"


def _database(arguments: argparse.Namespace) -> Path:
    """Return the given database, or the one in COLMAP's usual place."""
    if arguments.database is not None:
        return Path(arguments.database)
    places: list[Path] = [
        folder / "database.db" for folder in (arguments.model.resolve(), *arguments.model.resolve().parents[:2])
    ]
    for place in places:
        if place.exists():
            return place
    raise ValueError(f"no database.db in {arguments.model} nor above it: give --database")


def _read_done(out: Path | None) -> dict[str, bool]:
    """Return the images that a file already has, and whether each is reliable. Remove an incomplete last line."""
    if out is None:
        return {}
    check_writable(out)
    if not out.exists():
        return {}
    if not out.is_file():
        raise ValueError(f"--out {out} is not a regular file")
    done = {}
    whole, newline, part = read_text(out).rpartition("\n")
    for line in whole.splitlines():
        try:
            entry: Any = parse_json(line)
            done[str(entry["image"])] = bool(entry["reliable"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"--out {out} contains other data; choose another file") from None
    if part and not part.startswith("{"):
        raise ValueError(f"--out {out} contains other data; choose another file")
    if part:  # an interrupted run wrote only a part of the last line
        with replacing(out) as file:
            file.write_text(whole + newline, encoding="utf-8")
    return done


def as_text(path: Path, found: AbsolutePoseResult, reliable: bool, source: FeatureSource) -> str:
    """Return an answer as text: the pose if it is reliable, otherwise what speaks against it."""
    name = escape_controls(str(path))
    confidence = "unknown" if found.confidence is None else f"{found.confidence:.3f}"
    inliers = f"{found.num_inliers} of {found.num_matches} matches"
    features = f"features from the {source}"
    if found.R is None or found.t is None or found.camera is None:
        return f"{name}: not localised: {found.num_matches} matches, {features}"
    if not reliable:
        return f"{name}: not localised: confidence {confidence}, inliers {inliers}, {features}"
    matrix = "\n".join("  [" + " ".join(f"{value:11.6f}" for value in row) + " ]" for row in np.c_[found.R, found.t])
    place = ", ".join(f"{value:.4f}" for value in -found.R.T @ found.t)
    q = " ".join(f"{value:.6f}" for value in quaternion_from_rotation(found.R))
    return "\n".join(
        [
            f"{name}: pose of the camera, x = R X + t:",
            matrix,
            f"  camera centre   ({place})",
            f"  quaternion      {q}",
            f"  inliers         {inliers}, {100 * found.num_inliers / found.num_matches:.0f} %",
            f"  features        from the {source}",
            *describe_refinement(found, "  refined         "),
            f"  confidence      {confidence}",
            f"  focal length    {describe_focal(found.camera)}",
            f"  time            {1e3 * found.elapsed_s:.0f} ms",
        ]
    )


def _write_html(target: Path, path: Path, image: Image, found: AbsolutePoseResult) -> None:
    from caransac.viewer.query_page import write_query_page

    size = image.shape[1], image.shape[0]
    say(f"Page: {write_query_page(target, path.name, found, image, size).resolve()}")

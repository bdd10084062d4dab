"""A reconstruction from images, with pairs verified by caransac and by COLMAP.

Renders views of scenes with known cameras. pycolmap extracts and matches SIFT features without verification. Each tool
verifies a copy of the database, and COLMAP's incremental mapper runs on all copies. Needs the extra 'bench'.

The folders of --photographs have images NAME.jpg of one camera and cameras.json: by name K, R and t (world to camera),
width and height. The centre of the top-left pixel is (0, 0).
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac import Camera, Options
from caransac.geometry import pose_error_deg, relative_pose
from caransac.io.images import read_image
from caransac.verification import ColmapDatabase, VerificationOptions, open_executor, verify
from caransac_lab.bench.publication import FAILED, Content, columns_table
from caransac_lab.render import RenderedViews, SceneName, render_views

NAME = "reconstruction"
QUICK_VIEWS = 5
WRONG_DEG = 5.0
WIDTHS: dict[SceneName, int] = {"boxes": 640, "courtyard": 800}  # image widths in pixels
COLUMNS = {
    "registered": "images",
    "verified_pairs": "pairs",
    "inliers": "inliers",
    "points": "points",
    "reprojection_px": "reprojection error, px",
    "median_pose_error_deg": "median pose error, °",
    "worst_pose_error_deg": "worst",
    "wrong": "wrong images",
    "verification_s": "verification, s",
    "mapping_s": "mapping, s",
}
EXPLANATION = """\
All tools get the same images, features and matches. Times are processor times: of one thread for the verification,
without the start of the programs, and of all threads for the mapper. COLMAP's default threshold is 4 px, that of
`caransac verify` 3 px. Pose errors are relative poses of all pairs of registered images. An image is wrong if the
median error of its poses relative to the other images is more than 5°.
"""


def read_photographs(folder: Path, count: int | None = None) -> RenderedViews:
    """Read photographs and their true cameras from a folder; only the first ones if a count is given."""
    known = json.loads((folder / "cameras.json").read_text())
    names = sorted(known)[:count]
    cameras = [known[name] for name in names]
    (K, width, height), *others = {(str(each["K"]), each["width"], each["height"]) for each in cameras}
    if others:
        raise ValueError(f"{folder} has photographs of several cameras")
    (fx, _, cx), (_, fy, cy), _ = json.loads(K)
    return RenderedViews(
        tuple(read_image(folder / f"{name}.jpg") for name in names),
        Camera("SIMPLE_PINHOLE", ((fx + fy) / 2, cx, cy), width, height),
        np.array([each["R"] for each in cameras]),
        np.array([each["t"] for each in cameras]),
    )


def make_database(folder: Path, views: RenderedViews, *, with_focal: bool = True) -> Path:
    """Write the images, extract features, and match them without verification. Return the database.

    Without the focal length, COLMAP stores a guess in the database and marks it as such.
    """
    images, database = folder / "images", folder / "matched.db"
    images.mkdir()
    for number, image in enumerate(views.images):
        pycolmap.Bitmap.from_array(image).write(str(images / f"{number:03d}.png"))
    focal, cx, cy = views.camera.params
    params = f"{focal},{cx + 0.5},{cy + 0.5}" if with_focal else ""  # COLMAP's pixels
    reader = pycolmap.ImageReaderOptions(camera_model="SIMPLE_PINHOLE", camera_params=params)
    pycolmap.extract_features(database, images, camera_mode=pycolmap.CameraMode.SINGLE, reader_options=reader)
    options = pycolmap.FeatureMatchingOptions(skip_geometric_verification=True)
    pycolmap.match_exhaustive(database, matching_options=options)
    return database


def verify_by_caransac(database: Path, max_error_px: float) -> None:
    """Verify like ``caransac verify DATABASE --max-error PX --workers 1``."""
    source = ColmapDatabase(database)
    options = VerificationOptions(estimation=Options(max_error_px=max_error_px))
    with open_executor() as (executor, in_flight):
        verify(source, executor, options, in_flight=in_flight)
    source.close()


def verify_by_colmap(database: Path, workers: int) -> None:
    """Verify with COLMAP's default options, including its threshold of 4 px."""
    pycolmap.geometric_verification(database, pycolmap.GeometricVerifierOptions(num_threads=workers))


TOOLS = {
    "COLMAP": partial(verify_by_colmap, workers=1),
    "caransac, 2 px": partial(verify_by_caransac, max_error_px=2.0),
    "caransac, 3 px": partial(verify_by_caransac, max_error_px=3.0),
    "caransac, 4 px": partial(verify_by_caransac, max_error_px=4.0),
}


def reconstruct(database: Path, images: Path, out: Path, views: RenderedViews) -> dict[str, Any]:
    """Run the mapper. Return the number of registered images, and the errors of the poses between them."""
    out.mkdir()
    options = pycolmap.IncrementalPipelineOptions(random_seed=0)
    models = pycolmap.incremental_mapping(database, images, out, options)
    if not models:
        return {"registered": 0}
    model = max(models.values(), key=lambda m: m.num_reg_images())
    poses = {}
    for image_id in model.reg_image_ids():
        image = model.images[image_id]
        matrix = image.cam_from_world().matrix()
        poses[int(Path(image.name).stem)] = matrix[:, :3], matrix[:, 3]
    errors = {
        (first, second): pose_error_deg(
            *relative_pose(*poses[first], *poses[second]), *views.relative_pose(first, second)
        )
        for first, second in itertools.combinations(sorted(poses), 2)
    }
    medians = [np.median([error for pair, error in errors.items() if each in pair]) for each in poses]
    return {
        "models": len(models),
        "registered": len(poses),
        "points": model.num_points3D(),
        "reprojection_px": round(model.compute_mean_reprojection_error(), 3),
        "focal_error_percent": round(100 * abs(focal_of(model) / views.camera.fx - 1), 3),
        "median_pose_error_deg": round(float(np.median(list(errors.values()))), 4),
        "worst_pose_error_deg": round(max(errors.values()), 4),
        "wrong": int(np.count_nonzero(np.array(medians) > WRONG_DEG)),
    }


def focal_of(model: pycolmap.Reconstruction) -> float:
    """Return the focal length of a reconstruction with one camera."""
    (camera,) = model.cameras.values()
    return float(camera.mean_focal_length())


def count_pairs(database: Path) -> dict[str, int]:
    """Count verified pairs and their inliers."""
    with pycolmap.Database.open(database) as opened:
        return {"verified_pairs": opened.num_verified_image_pairs(), "inliers": opened.num_inlier_matches()}


def compare(views: RenderedViews) -> dict[str, Any]:
    """Return the figures of all tools on one scene, by name."""
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matched = make_database(folder, views)
        for number, (tool, run) in enumerate(TOOLS.items()):
            database = folder / f"{number}.db"
            shutil.copyfile(matched, database)
            started = time.process_time()
            run(database)
            verification_s = round(time.process_time() - started, 2)
            started = time.process_time()
            rows[tool] = {"verification_s": verification_s, **count_pairs(database)}
            rows[tool] |= reconstruct(database, folder / "images", folder / str(number), views)
            rows[tool]["mapping_s"] = round(time.process_time() - started, 2)
    return {"views": len(views.images), "width": views.camera.width, "height": views.camera.height, "rows": rows}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the comparison as a document."""
    text = f"# COLMAP's mapper after either verification\n\n{EXPLANATION}"
    for scene, found in [*content["scenes"].items(), *content["photographs"].items()]:
        text += f"\n## {scene}: {found['views']} images, {found['width']} x {found['height']}\n\n"
        text += columns_table(found["rows"], COLUMNS)
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--views", type=int, default=12, metavar="N", help="images per scene (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the scenes (default: %(default)s)")
    parser.add_argument("--photographs", nargs="+", type=Path, default=[], metavar="DIR", help="scenes of photographs")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    num_views, widths = (QUICK_VIEWS, {"boxes": 320}) if arguments.quick else (arguments.views, WIDTHS)
    scenes = {
        scene: compare(render_views(num_views, width=width, height=3 * width // 4, seed=arguments.seed, scene=scene))
        for scene, width in widths.items()
    }
    photographs = {
        folder.name: compare(read_photographs(folder, QUICK_VIEWS if arguments.quick else None))
        for folder in arguments.photographs
    }
    bad = [
        f"{scene}, {tool}: an image or a pose is lost"
        for scene, found in scenes.items()
        for tool, row in found["rows"].items()
        if tool != "COLMAP" and not (row["registered"] == num_views and row["worst_pose_error_deg"] < 0.5)
    ]
    return {"seed": arguments.seed, "scenes": scenes, "photographs": photographs, FAILED: bad}

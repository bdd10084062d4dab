"""A reconstruction from rendered images, with the pairs verified by caransac and by COLMAP.

    python benchmarks/reconstruction.py --out benchmarks/results/reconstruction.json

Renders views of a scene whose cameras are known, extracts and matches SIFT features with pycolmap without verification,
copies the database, verifies one copy each, and runs COLMAP's incremental mapper on both. Needs the extra 'bench'.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac._support.batch import count_cores
from caransac._support.files import replacing
from caransac.bench import machine
from caransac.geometry import pose_error_deg, relative_pose
from caransac.render import RenderedViews, render_views
from caransac.verification import ColmapDatabase, VerificationOptions, open_executor, verify


def make_database(folder: Path, views: RenderedViews, *, with_focal: bool = True) -> Path:
    """Write the images, extract features, and match them without verification; returns the database.

    Without the focal length, COLMAP puts a guess into the database and says so.
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


def verify_by_caransac(database: Path, workers: int) -> None:
    """What ``caransac verify DATABASE`` does."""
    source = ColmapDatabase(database)
    with open_executor(workers) as (executor, in_flight):
        verify(source, executor, VerificationOptions(), in_flight=in_flight)
    source.close()


def verify_by_colmap(database: Path, workers: int) -> None:
    """COLMAP's own verification with its default options."""
    pycolmap.geometric_verification(database, pycolmap.GeometricVerifierOptions(num_threads=workers))


def reconstruct(database: Path, images: Path, out: Path, views: RenderedViews) -> dict[str, Any]:
    """Run the mapper; how many images it registered, and how far the poses between them are from the truth."""
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
    errors = []
    for first, second in itertools.combinations(sorted(poses), 2):
        found = relative_pose(*poses[first], *poses[second])
        errors.append(pose_error_deg(*found, *views.relative_pose(first, second)))
    return {
        "models": len(models),
        "registered": len(poses),
        "points": model.num_points3D(),
        "reprojection_px": round(model.compute_mean_reprojection_error(), 3),
        "focal_error_percent": round(100 * abs(focal_of(model) / views.camera.fx - 1), 3),
        "median_pose_error_deg": round(float(np.median(errors)), 4),
        "worst_pose_error_deg": round(max(errors), 4),
    }


def focal_of(model: pycolmap.Reconstruction) -> float:
    """The focal length of the one camera of a reconstruction."""
    (camera,) = model.cameras.values()
    return float(camera.mean_focal_length())


def count_pairs(database: Path) -> dict[str, int]:
    """Verified pairs and their inliers."""
    with pycolmap.Database.open(database) as opened:
        return {"verified_pairs": opened.num_verified_image_pairs(), "inliers": opened.num_inlier_matches()}


def compare(num_views: int, width: int, workers: int, seed: int) -> dict[str, Any]:
    """The whole comparison."""
    views = render_views(num_views, width=width, height=3 * width // 4, seed=seed)
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matched = make_database(folder, views)
        for tool, run in (("caransac", verify_by_caransac), ("COLMAP", verify_by_colmap)):
            database = folder / f"{tool}.db"
            shutil.copyfile(matched, database)
            started = time.perf_counter()
            run(database, workers)
            verification_s = round(time.perf_counter() - started, 3)
            started = time.perf_counter()
            rows[tool] = {"verification_s": verification_s, **count_pairs(database)}
            rows[tool] |= reconstruct(database, folder / "images", folder / tool, views)
            rows[tool]["mapping_s"] = round(time.perf_counter() - started, 2)
    return {
        "views": num_views,
        "width": width,
        "seed": seed,
        "workers": workers,
        "machine": machine.describe(),
        "pycolmap": pycolmap.__version__,
        "rows": rows,
    }


def as_markdown(result: dict[str, Any]) -> str:
    """The comparison as a table."""
    columns = ("registered", "verified_pairs", "inliers", "points", "median_pose_error_deg", "worst_pose_error_deg")
    columns += ("verification_s", "mapping_s")
    lines = ["| | " + " | ".join(name.replace("_", " ") for name in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for tool, row in result["rows"].items():
        lines.append(f"| {tool} | " + " | ".join(str(row.get(name, "")) for name in columns) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run the comparison, print a table, write JSON; fails if an image or a pose is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=12, metavar="N", help="images (default: %(default)s)")
    parser.add_argument("--width", type=int, default=640, metavar="PX", help="of the images (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=count_cores(), metavar="N", help="workers of either (default: all cores)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the scene (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the result there")
    arguments = parser.parse_args()
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    result = compare(arguments.views, arguments.width, arguments.workers, arguments.seed)
    print(as_markdown(result))
    if arguments.out is not None:
        with replacing(arguments.out) as temporary:
            temporary.write_text(json.dumps(result, indent=1) + "\n")
    ours = result["rows"]["caransac"]
    good = ours["registered"] == arguments.views and ours["worst_pose_error_deg"] < 0.5
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

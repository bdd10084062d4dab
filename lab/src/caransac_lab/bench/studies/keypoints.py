"""COLMAP's mapper on photographs before and after `caransac refine`, against known cameras.

Each DIR has images NAME.jpg and cameras.json: by name K, R and t (world to camera, in metres), width and height. The
centre of the top-left pixel is (0, 0). Features are COLMAP's SIFT and OpenCV's ORB, all pairs are matched, the cameras
are fixed. Figures are medians over runs of the mapper. Centres and rotations are compared after a similarity.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac.io.descriptors import match_vectors
from caransac.io.images import detect, read_image
from caransac_lab.bench.publication import Content, columns_table

NAME = "keypoints"
FEATURES = 6000  # of ORB per image
QUICK_VIEWS = 5
WHOLE = ("images", "points")
COLUMNS = {
    "images": "images",
    "points": "points",
    "track_length": "mean track length",
    "reprojection_px": "reprojection error, px",
    "centre_mm": "median error of centres, mm",
    "rotation_deg": "of rotations, °",
}
Cameras = dict[str, dict[str, Any]]  # by image name


def read_cameras(folder: Path, count: int | None) -> Cameras:
    """Return the cameras of the photographs in a folder; only the first ones if a count is given."""
    known = json.loads((folder / "cameras.json").read_text())
    return {f"{name}.jpg": known[name] for name in sorted(known)[:count]}


def as_colmap(camera: dict[str, Any]) -> pycolmap.Camera:
    """Return a camera in COLMAP's pixels."""
    (fx, _, cx), (_, fy, cy), _ = camera["K"]
    made = pycolmap.Camera(
        model="PINHOLE", width=camera["width"], height=camera["height"], params=[fx, fy, cx + 0.5, cy + 0.5]
    )
    made.has_prior_focal_length = True
    return made


def match_sift(database: Path, images: Path, cameras: Cameras) -> None:
    """Extract and match COLMAP's SIFT features without verification."""
    reader = pycolmap.ImageReaderOptions(camera_model="PINHOLE")
    pycolmap.extract_features(
        database, images, list(cameras), camera_mode=pycolmap.CameraMode.PER_IMAGE, reader_options=reader
    )
    with pycolmap.Database.open(database) as opened:
        for image in opened.read_all_images():
            camera = as_colmap(cameras[image.name])
            camera.camera_id = image.camera_id
            opened.update_camera(camera)
    options = pycolmap.FeatureMatchingOptions(skip_geometric_verification=True)
    pycolmap.match_exhaustive(database, matching_options=options)


def match_orb(database: Path, images: Path, cameras: Cameras) -> None:
    """Detect OpenCV's ORB keypoints and match mutual nearest neighbours."""
    found = {name: detect(read_image(images / name), "orb", FEATURES, 0) for name in cameras}
    with pycolmap.Database.open(database) as opened:
        ids = {}
        for name, camera in cameras.items():
            ids[name] = opened.write_image(pycolmap.Image(name=name, camera_id=opened.write_camera(as_colmap(camera))))
            opened.write_keypoints(ids[name], (found[name][0] + 0.5).astype(np.float32))
        for first, second in itertools.combinations(cameras, 2):
            index1, index2, _ = match_vectors(found[first][1], found[second][1])
            opened.write_matches(ids[first], ids[second], np.stack([index1, index2], axis=1).astype(np.uint32))


MATCHERS: dict[str, Callable[[Path, Path, Cameras], None]] = {"COLMAP's SIFT": match_sift, "ORB": match_orb}


def reconstruct(database: Path, images: Path, cameras: Cameras, seed: int) -> dict[str, float] | None:
    """Run the mapper with fixed cameras. Return the figures of the largest model, or None."""
    options = pycolmap.IncrementalPipelineOptions(random_seed=seed)
    options.ba_refine_focal_length = options.ba_refine_extra_params = options.ba_refine_principal_point = False
    with tempfile.TemporaryDirectory() as out:
        models = pycolmap.incremental_mapping(database, images, out, options)
    if not models:
        return None
    model = max(models.values(), key=lambda each: each.num_reg_images())
    poses = {}
    for image_id in model.reg_image_ids():
        image = model.images[image_id]
        poses[image.name] = image.cam_from_world().matrix()
    found, truth = (
        np.array([-pose[:, :3].T @ pose[:, 3] for pose in each])
        for each in (poses.values(), [np.c_[cameras[name]["R"], np.ravel(cameras[name]["t"])] for name in poses])
    )
    scale, R, t = similarity(found, truth)
    rotations = [pose[:, :3] @ R.T @ np.transpose(cameras[name]["R"]) for name, pose in poses.items()]
    angles = [np.degrees(np.arccos(np.clip((np.trace(each) - 1) / 2, -1, 1))) for each in rotations]
    return {
        "images": len(poses),
        "points": model.num_points3D(),
        "track_length": float(model.compute_mean_track_length()),
        "reprojection_px": float(model.compute_mean_reprojection_error()),
        "centre_mm": float(1e3 * np.median(np.linalg.norm(scale * found @ R.T + t - truth, axis=1))),
        "rotation_deg": float(np.median(angles)),
    }


def similarity(source: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return scale, rotation and translation that map points (n, 3) onto others by least squares (Umeyama)."""
    one, other = source - source.mean(axis=0), target - target.mean(axis=0)
    U, values, V = np.linalg.svd(other.T @ one)
    signs = np.array([1, 1, np.sign(np.linalg.det(U @ V))])
    R = U * signs @ V
    scale = float(values @ signs / (one**2).sum())
    return scale, R, target.mean(axis=0) - scale * R @ source.mean(axis=0)


def compare(folder: Path, count: int | None, runs: int) -> dict[str, Any]:
    """Return the figures of a scene by detector, before and after the refinement."""
    cameras, rows = read_cameras(folder, count), dict[str, Any]()
    for detector, match in MATCHERS.items():
        with tempfile.TemporaryDirectory() as name:
            before, after = Path(name) / "before.db", Path(name) / "after.db"
            match(before, folder, cameras)
            exact = ["--focal-deviation", "0", "--quiet"]
            command = [sys.executable, "-m", "caransac"]
            subprocess.run([*command, "verify", before, *exact], check=True, stdout=subprocess.DEVNULL)
            refine: list[str | Path] = ["refine", before, "--images", folder, "--out", after]
            subprocess.run([*command, *refine, *exact], check=True, stdout=subprocess.DEVNULL)
            for label, database in (("verified", before), ("refined", after)):
                found = [reconstruct(database, folder, cameras, seed) for seed in range(runs)]
                done = [each for each in found if each is not None]
                rows[f"{detector}, {label}"] = {
                    column: round(float(np.median([each[column] for each in done])), 0 if column in WHOLE else 3)
                    for column in COLUMNS
                    if done
                }
    return {"views": len(cameras), "rows": rows}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the comparison as a document."""
    text = "# COLMAP's mapper before and after `caransac refine`\n"
    for scene, found in content["scenes"].items():
        text += f"\n## {scene}: {found['views']} images\n\n{columns_table(found['rows'], COLUMNS)}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("scenes", nargs="+", type=Path, metavar="DIR", help="scenes of photographs")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of the mapper (default: %(default)s)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    count, runs = (QUICK_VIEWS, 1) if arguments.quick else (None, arguments.runs)
    return {"scenes": {folder.name: compare(folder, count, runs) for folder in arguments.scenes}}

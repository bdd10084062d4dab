"""Real matches in COLMAP databases, verified by caransac and by COLMAP, and the resulting reconstructions.

SCENE is a folder of one scene in the layout of the RANSAC Tutorial 2020 (docs/formats.md), with true poses. Its matches
with a ratio below 0.8, as in COLMAP's matcher, and the true cameras are written to a database. COLMAP's incremental
mapper runs on the verified matches, with one thread and fixed cameras. COLMAP verifies with its defaults (4 px),
caransac with its own (3 px, a confidence of 0.2), and with other thresholds of the error and the confidence. Right
matches are within 2 px of the true epipolar geometry. A point in two images has no independent check; a point in three
images has one. Seconds are processor times of the verification and of the mapper. Needs the extras 'colmap' and
'bench'.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac.geometry import Array, essential_from_pose, fundamental_from_essential, sampson_sq
from caransac_lab.bench.publication import Content, table
from caransac_lab.bench.studies.focal import views
from caransac_lab.datasets import Pair

NAME = "real_databases"
MAX_RATIO, RIGHT_PX = 0.8, 2.0
HALF_PIXEL = 0.5  # COLMAP's origin is a corner of the first pixel, that of the data is its centre
Matches = dict[tuple[str, str], Array]


class Scene:
    """A scene as a database, with the truth about its pairs."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.keypoints: dict[str, dict[tuple[float, float], int]] = {}
        self.matches: Matches = {}
        self.fundamentals: dict[tuple[str, str], Array] = {}
        cameras, images = dict[tuple[float, ...], int](), dict[str, int]()
        with pycolmap.Database.open(database) as opened, pycolmap.DatabaseTransaction(opened):
            for view in views(folder.parent, None, [folder.name]):
                names = tuple(view.pair.name.split("-"))
                self._add(names, view.pair)
                for name, camera, (width, height) in zip(
                    names, (view.pair.camera1, view.pair.camera2), (view.size1, view.size2), strict=True
                ):
                    if name in images:
                        continue
                    fx, fy, cx, cy = camera.intrinsics
                    params = (fx, fy, cx + HALF_PIXEL, cy + HALF_PIXEL)
                    if params not in cameras:
                        colmap = pycolmap.Camera(model="PINHOLE", width=width, height=height, params=params)
                        colmap.has_prior_focal_length = True
                        cameras[params] = opened.write_camera(colmap)
                    images[name] = opened.write_image(pycolmap.Image(name=f"{name}.jpg", camera_id=cameras[params]))
            for name, known in self.keypoints.items():
                opened.write_keypoints(images[name], np.array(list(known), np.float32) + HALF_PIXEL)
            for (first, second), rows in self.matches.items():
                if len(rows):
                    opened.write_matches(images[first], images[second], rows)
        self.images = images

    def _add(self, names: tuple[str, ...], pair: Pair) -> None:
        good = pair.scores < MAX_RATIO
        rows = [
            [
                self.keypoints.setdefault(name, {}).setdefault(place, len(self.keypoints[name]))
                for place in map(tuple, np.round(points[good], 2).tolist())
            ]
            for name, points in zip(names, (pair.points1, pair.points2), strict=True)
        ]
        self.matches[names[0], names[1]] = np.unique(np.array(rows, np.uint32).reshape(2, -1).T, axis=0)
        E = essential_from_pose(pair.R, pair.t)
        self.fundamentals[names[0], names[1]] = fundamental_from_essential(E, pair.camera1.K, pair.camera2.K)

    def count(self, database: Path) -> dict[str, int]:
        """Count the pairs with verified matches, and the right and wrong matches among these."""
        places = {name: np.array(list(known)) for name, known in self.keypoints.items()}
        pairs = right = wrong = 0
        with pycolmap.Database.open(database) as opened:
            for (first, second), F in self.fundamentals.items():
                ids = self.images[first], self.images[second]
                if not opened.exists_two_view_geometry(*ids):
                    continue
                rows = np.asarray(opened.read_two_view_geometry(*ids).inlier_matches).reshape(-1, 2)
                near = sampson_sq(F, places[first][rows[:, 0]], places[second][rows[:, 1]]) < RIGHT_PX**2
                right, wrong = right + int(near.sum()), wrong + int((~near).sum())
                pairs += len(rows) > 0
        return {"verified_pairs": pairs, "right": right, "wrong": wrong}


def by_colmap(database: Path) -> None:
    """Verify with COLMAP's default options."""
    pycolmap.geometric_verification(database, pycolmap.GeometricVerifierOptions(num_threads=1))


def by_caransac(database: Path, *arguments: str) -> None:
    """Run the command, including its start."""
    command = [sys.executable, "-m", "caransac", "verify", str(database), "--workers", "1", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


TOOLS: dict[str, Callable[[Path], None]] = {
    "COLMAP, 4 px": by_colmap,
    "caransac, 3 px (default)": by_caransac,
    "caransac, 2 px": lambda database: by_caransac(database, "--max-error", "2"),
    "caransac, auto": lambda database: by_caransac(database, "--max-error", "auto"),
    "caransac, every pair": lambda database: by_caransac(database, "--min-confidence", "0"),
    "caransac, confidence 0.5": lambda database: by_caransac(database, "--min-confidence", "0.5"),
}


def reconstruct(database: Path, out: Path) -> dict[str, Any]:
    """Return the largest model that the mapper makes from a verified database."""
    options = pycolmap.IncrementalPipelineOptions(random_seed=0, num_threads=1)
    options.ba_refine_focal_length = options.ba_refine_principal_point = options.ba_refine_extra_params = False
    out.mkdir()
    models = pycolmap.incremental_mapping(database, out, out, options)
    if not models:
        return {"registered": 0, "points": 0, "seen_by_three": 0, "error_px": None}
    model = max(models.values(), key=lambda each: each.num_reg_images())
    return {
        "registered": model.num_reg_images(),
        "points": model.num_points3D(),
        "seen_by_three": sum(point.track.length() >= 3 for point in model.points3D.values()),
        "error_px": model.compute_mean_reprojection_error(),
    }


def processor_s() -> float:
    """Return the processor time so far of this process and of those that it waited for."""
    return sum(os.times()[:4])


def measure(folder: Path) -> dict[str, Any]:
    """Return all rows of a scene."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scene = Scene(folder, scratch / "matched.db")
        rows = dict[str, Any]()
        for number, (label, verify) in enumerate(TOOLS.items()):
            database = scratch / f"{number}.db"
            shutil.copy(scratch / "matched.db", database)
            before = processor_s()
            verify(database)
            verified = processor_s()
            rows[label] = scene.count(database)
            counted = processor_s()
            rows[label] |= reconstruct(database, scratch / f"model{number}")
            rows[label] |= {"processor_s": verified - before, "mapper_s": processor_s() - counted}
            print(folder.name, label, rows[label], flush=True)
        return {"images": len(scene.images), "pairs": len(scene.matches), "rows": rows}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    text = "# Real databases through COLMAP's mapper\n\n"
    text += "`caransac-lab study real_databases --help` explains the columns.\n"
    counts = ("verified_pairs", "right", "wrong", "registered", "points", "seen_by_three")
    header = ["", "pairs", "right matches", "wrong", "registered", "points", "in 3 images or more", "error px"]
    header += ["processor s", "mapper s"]
    for name, found in content["scenes"].items():
        lines = [
            [
                label,
                # Files of version 0.2 have no pairs and no time of the mapper.
                *(str(row.get(key, "")) for key in counts),
                "" if row["error_px"] is None else f"{row['error_px']:.3f}",
                f"{row['processor_s']:.2f}",
                f"{row['mapper_s']:.2f}" if "mapper_s" in row else "",
            ]
            for label, row in found["rows"].items()
        ]
        text += f"\n## {name}: {found['images']} images, {found['pairs']} pairs\n\n{table(header, lines)}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("scenes", nargs="+", type=Path, metavar="SCENE")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    pycolmap.logging.minloglevel = 2
    folders = arguments.scenes[:1] if arguments.quick else arguments.scenes
    return {"scenes": {folder.name: measure(folder) for folder in folders}}

"""A reconstruction from rendered images with an unknown focal length.

Renders views of scenes from one camera. pycolmap extracts and matches SIFT features without verification and without a
focal length, which COLMAP then guesses as 1.2 times the longer side. Copies of the database are verified by COLMAP, by
caransac, and by caransac with ``--write-focals``. COLMAP's incremental mapper runs on each. Needs the extra 'bench'.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac._support.batch import count_cores
from caransac.geometry import pose_error_deg
from caransac_lab.bench.publication import Content, columns_table
from caransac_lab.bench.studies.reconstruction import count_pairs, make_database, reconstruct, verify_by_colmap
from caransac_lab.render import RenderedViews, render_views

NAME = "focal_pooling"
TOOLS = ("COLMAP", "caransac", "caransac --write-focals")
BEFORE = ("stored_focal_error_percent", "pairs_with_pose", "median_pair_error_deg", "verification_s")
AFTER = ("registered", "points", "reprojection_px", "focal_error_percent", "worst_pose_error_deg", "mapping_s")
COLUMNS = (*BEFORE, *AFTER)


def verify_by(tool: str, database: Path, workers: int) -> None:
    """Verify a database with one of `TOOLS`."""
    if tool == "COLMAP":
        verify_by_colmap(database, workers)
        return
    command = [sys.executable, "-m", "caransac", "verify", str(database), "--workers", str(workers)]
    subprocess.run([*command, *tool.split()[1:]], check=True, stdout=subprocess.DEVNULL)


def focal_error_percent(database: Path, focal: float) -> float:
    """Return the error of the focal length of a database's only camera, in per cent."""
    connection = sqlite3.connect(database)
    ((params,),) = connection.execute("SELECT params FROM cameras").fetchall()
    connection.close()
    return round(100 * abs(float(np.frombuffer(params)[0]) / focal - 1), 3)


def pair_poses(database: Path, views: RenderedViews) -> dict[str, Any]:
    """Return the number of verified pairs with a pose, and the median of its error."""
    errors = []
    with pycolmap.Database.open(database) as opened:
        for first, second in itertools.combinations(opened.read_all_images(), 2):
            pose = opened.read_two_view_geometry(first.image_id, second.image_id).cam2_from_cam1
            if pose is not None and np.any(pose.translation):
                truth = views.relative_pose(int(Path(first.name).stem), int(Path(second.name).stem))
                errors.append(pose_error_deg(pose.rotation.matrix(), pose.translation, *truth))
    return {"pairs_with_pose": len(errors)} | (
        {"median_pair_error_deg": round(float(np.median(errors)), 3)} if errors else {}
    )


def compare(num_views: int, width: int, arc_deg: float, seed: int, workers: int) -> dict[str, dict[str, Any]]:
    """Return the mapper's results for one scene, by tool."""
    views = render_views(num_views, width=width, height=3 * width // 4, seed=seed, arc_deg=arc_deg)
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matched = make_database(folder, views, with_focal=False)
        for number, tool in enumerate(TOOLS):
            database = Path(shutil.copyfile(matched, folder / f"{number}.db"))
            started = time.perf_counter()
            verify_by(tool, database, workers)
            row: dict[str, Any] = {"verification_s": round(time.perf_counter() - started, 2)}
            row |= {"stored_focal_error_percent": focal_error_percent(database, views.camera.fx)}
            row |= pair_poses(database, views)
            started = time.perf_counter()
            row |= count_pairs(database) | reconstruct(database, folder / "images", folder / str(number), views)
            rows[tool] = row | {"mapping_s": round(time.perf_counter() - started, 2)}
    return rows


def mean_of(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Average every figure over the scenes that have it."""
    return {
        name: round(float(np.mean([row[name] for row in rows if name in row])), 3)
        for name in dict.fromkeys(name for row in rows for name in row)
    }


def as_markdown(content: dict[str, Any]) -> str:
    """Format the means as a table."""
    text = f"# Reconstruction without a focal length\n\nMeans over {len(content['scenes'])} rendered scenes of "
    text += f"{content['views']} views. `caransac-lab study focal_pooling --help` describes the runs.\n\n"
    return text + columns_table(content["means"], {name: name.replace("_", " ") for name in COLUMNS})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--views", type=int, default=12, metavar="N", help="images per scene (default: %(default)s)")
    parser.add_argument(
        "--width", type=int, default=640, metavar="PX", help="width of the images (default: %(default)s)"
    )
    parser.add_argument(
        "--arc", type=float, default=75.0, metavar="DEG", help="arc on which the cameras stand (default: %(default)s)"
    )
    parser.add_argument("--scenes", type=int, default=3, metavar="N", help="number of scenes (default: %(default)s)")
    parser.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help="processes or threads of each tool (default: all cores)",
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    views, width, seeds = (5, 320, 1) if arguments.quick else (arguments.views, arguments.width, arguments.scenes)
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    scenes = [compare(views, width, arguments.arc, seed, arguments.workers) for seed in range(seeds)]
    return {
        "views": views,
        "width": width,
        "arc_deg": arguments.arc,
        "workers": arguments.workers,
        "means": {tool: mean_of([rows[tool] for rows in scenes]) for tool in TOOLS},
        "scenes": scenes,
    }

"""Large photographs: time, memory, inliers and pose errors, before and now, compared with COLMAP.

The folder of --photos has photographs and poses.json: `camera` in COLMAP's format, `images` with R and t of each
(camera from world), and `pairs` of names. The other pairs are rendered with 12 megapixels, then blurred and made noisy.
Each pair and method is measured in a separate process, from reading the two files to the pose. Times are processor
times.

- before: full size, the 8000 strongest keypoints above OpenCV's contrast, as in `caransac pose` 0.1
- before, 1600 px: the same on reduced images
- now: `caransac.io.images.match_images`
- now, full size: the same with ``max_size=0``
- COLMAP, CA-RANSAC: COLMAP's features and matches with the defaults of pycolmap, and our estimator
- COLMAP: the same with its own estimator and its threshold of 4 px; all others have 1 px
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import caransac
from caransac.geometry import Array, pose_error_deg, relative_pose
from caransac.io import images
from caransac_lab.bench.publication import Content, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.metrics import FAILURE_DEG
from caransac_lab.render import render_pair

NAME, DRONE = "photos", "Photographs of a drone"
MODULE = "caransac_lab.bench.studies.photos"  # this module, which each measurement starts as a program
MATCHERS = ("before", "before, 1600 px", "now", "now, full size", "COLMAP")
WIDTH = 4000  # width of rendered images in pixels: 12 megapixels
BLUR_PX, NOISE = 2.0, 10.0  # standard deviations of rendered images, in pixels and in grey levels
HEAD = """# Large photographs

`caransac-lab study photos --help` explains the rows. Scale, contrast and number of keypoints of "now" were chosen on
the drone's photographs, so they are no independent test. Their true poses come from a reconstruction whose focal length
is far from the EXIF data; it may contribute some degrees of the errors.
"""
Pose = tuple[Array, Array]


def read_photos(folder: Path) -> list[dict[str, Any]]:
    """Return the pairs of a folder of photographs."""
    known = json.loads((folder / "poses.json").read_text())
    poses = {name: [np.array(pose[part]) for part in ("R", "t")] for name, pose in known["images"].items()}
    camera = known["camera"]
    focal, cx, cy, *distortion = camera["params"]
    ours = camera | {"params": [focal, cx - 0.5, cy - 0.5, *distortion]}
    jobs = []
    for names in known["pairs"]:
        R, t = relative_pose(*poses[names[0]], *poses[names[1]])
        paths = [str(folder / name) for name in names]
        jobs.append({"paths": paths, "camera": ours, "R": R.tolist(), "t": t.tolist()})
    return jobs


def render_photos(folder: Path, count: int, width: int) -> list[dict[str, Any]]:
    """Render pairs, blurred and noisy, to files in a folder."""
    import cv2

    rng, jobs = np.random.default_rng(0), []
    for seed in range(count):
        pair = render_pair(seed, width=width, height=3 * width // 4, angle_deg=16)
        paths = [folder / f"{seed}-{side}.jpg" for side in (1, 2)]
        for path, image in zip(paths, (pair.image1, pair.image2), strict=True):
            blurred = cv2.GaussianBlur(image, (0, 0), BLUR_PX)
            noisy = blurred + rng.normal(0, NOISE, blurred.shape).astype(np.float32)
            images.write_image(path, np.clip(noisy, 0, 255).astype(np.uint8))
        names = [str(path) for path in paths]
        jobs.append({"paths": names, "camera": pair.camera.to_dict(), "R": pair.R.tolist(), "t": pair.t.tolist()})
    return jobs


def detect_before(image: images.Image, max_size: int) -> tuple[Array, Any]:
    """Detect the strongest 8000 keypoints above OpenCV's contrast, as before; in the pixels of the reduced image."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    reduced = images._reduce(cv2, grey, max_size)
    sift = cv2.SIFT_create(8000, enable_precise_upscale=True)
    keypoints, descriptors = sift.detectAndCompute(reduced, None)
    scale = np.array(grey.shape[::-1]) / reduced.shape[::-1]
    return (cv2.KeyPoint_convert(keypoints) + 0.5) * scale - 0.5, images._vectors(descriptors)


def match(paths: list[str], matcher: str) -> tuple[Array, Array, Array | None]:
    """Return the matches of two files, and their ratios if there are any."""
    if matcher == "COLMAP":
        return *match_colmap(paths), None
    pixels = [images.read_image(path) for path in paths]
    if matcher.startswith("now"):
        return images.match_images(*pixels, max_size=0 if "full" in matcher else images.MAX_SIZE)
    found1, found2 = (detect_before(image, 1600 if "1600" in matcher else 0) for image in pixels)
    return images.match_features(found1, found2, "rootsift")


def match_colmap(paths: list[str]) -> tuple[Array, Array]:
    """Match by COLMAP's features and matcher. Return pixels in OpenCV's convention."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.WARNING.value
    folder, names = Path(paths[0]).parent, [Path(path).name for path in paths]
    with TemporaryDirectory() as temporary:
        database = Path(temporary) / "database.db"
        single = {"num_threads": 1, "use_gpu": False}
        pycolmap.extract_features(database, folder, image_names=names, extraction_options=single)
        pycolmap.match_exhaustive(database, matching_options=single | {"skip_geometric_verification": True})
        with pycolmap.Database.open(database) as opened:
            ids = {image.name: image.image_id for image in opened.read_all_images()}
            first, second = (opened.read_keypoints(ids[name])[:, :2].astype(float) - 0.5 for name in names)
            found = opened.read_matches(ids[names[0]], ids[names[1]])
    return first[found[:, 0]], second[found[:, 1]]


def estimate(points1: Array, points2: Array, ratios: Array | None, camera: caransac.Camera) -> tuple[Pose | None, int]:
    """Return the pose or None, and the number of inliers."""
    kind = None if ratios is None else "ratio"
    found = caransac.estimate_relative_pose(points1, points2, camera, camera, scores=ratios, score_kind=kind)
    pose = None if found.R is None or found.t is None else (found.R, found.t)
    return pose, found.num_inliers


def estimate_colmap(points1: Array, points2: Array, camera: caransac.Camera) -> tuple[Pose | None, int]:
    """Estimate the pose by COLMAP's estimator."""
    import pycolmap

    focal, cx, cy, *distortion = camera.params
    theirs = pycolmap.Camera(
        model=camera.model, width=camera.width, height=camera.height, params=[focal, cx + 0.5, cy + 0.5, *distortion]
    )
    every = np.repeat(np.arange(len(points1), dtype=np.uint32)[:, None], 2, axis=1)
    first, second = points1 + 0.5, points2 + 0.5
    geometry = pycolmap.estimate_calibrated_two_view_geometry(theirs, first, theirs, second, every)
    if not pycolmap.estimate_two_view_geometry_pose(theirs, first, theirs, second, geometry):
        return None, 0
    pose = geometry.cam2_from_cam1.matrix()
    return (pose[:, :3], pose[:, 3] / np.linalg.norm(pose[:, 3])), len(geometry.inlier_matches)


def peak_megabytes() -> float:
    """Return the peak memory of this process. getrusage would include the parent process."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def measure(job: dict[str, Any], matcher: str) -> dict[str, dict[str, float]]:
    """Match one pair and estimate its pose in this process. COLMAP's matches are given to both estimators."""
    import cv2

    cv2.setNumThreads(1)
    camera = caransac.Camera.from_dict(job["camera"])
    started = time.process_time()
    points1, points2, ratios = match(job["paths"], matcher)
    matched = time.process_time()
    pose, inliers = estimate(points1, points2, ratios, camera)
    estimated = time.process_time()

    def row(pose: Pose | None, inliers: int, seconds: float) -> dict[str, float]:
        return {
            "seconds": matched - started + seconds,
            "megabytes": peak_megabytes(),
            "matches": len(points1),
            "inliers": inliers,
            "error_deg": FAILURE_DEG if pose is None else pose_error_deg(*pose, job["R"], job["t"]),
        }

    if matcher != "COLMAP":
        return {matcher: row(pose, inliers, estimated - matched)}
    theirs = estimate_colmap(points1, points2, camera)
    return {
        "COLMAP, CA-RANSAC": row(pose, inliers, estimated - matched),
        "COLMAP": row(*theirs, time.process_time() - estimated),
    }


def measure_apart(job: dict[str, Any], matcher: str) -> dict[str, dict[str, float]]:
    """Run `measure` in a separate process, to measure its memory."""
    alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", MODULE, matcher]
    done = subprocess.run(command, input=json.dumps(job), env=alone, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_all(jobs: list[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Return the rows of all pairs by method."""
    found: dict[str, list[dict[str, float]]] = {}
    for matcher in MATCHERS:
        for job in jobs:
            for way, row in measure_apart(job, matcher).items():
                found.setdefault(way, []).append(row)
                print(matcher, row, file=sys.stderr)
    return found


def summarise(jobs: list[dict[str, Any]], found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return one row per method with medians and ranges over all pairs, and inliers and error of each pair."""
    ways = {}
    for way, rows in found.items():
        column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        inliers, errors = column["inliers"], column["error_deg"]
        ways[way] = {
            "seconds": float(np.median(column["seconds"])),
            "megabytes": float(column["megabytes"].max()),
            "matches": float(np.median(column["matches"])),
            "inliers": [float(inliers.min()), float(np.median(inliers)), float(inliers.max())],
            "error_deg": [float(np.median(errors)), float(errors.max())],
            "within_5_deg": int(np.sum(errors < 5)),
        }
    pairs = {
        " ".join(Path(path).stem for path in job["paths"]): {
            way: [rows[number]["inliers"], rows[number]["error_deg"]] for way, rows in found.items()
        }
        for number, job in enumerate(jobs)
    }
    return {"ways": ways, "pairs": pairs}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    header = ["", "time, s", "peak memory, MB", "matches", "inliers: least, median, most", "error, °: median, most"]
    text = HEAD
    for title, found in content["sets"].items():
        count = len(found["pairs"])
        lines = [
            [
                in_words(NAME, way),
                f"{row['seconds']:.1f}",
                f"{row['megabytes']:.0f}",
                f"{row['matches']:.0f}",
                ", ".join(f"{number:.0f}" for number in row["inliers"]),
                ", ".join(f"{error:.2f}" for error in row["error_deg"]),
                f"{row['within_5_deg']} of {count}",
            ]
            for way, row in found["ways"].items()
        ]
        text += f"\n## {title}, {count} pairs\n\n{table([*header, 'within 5°'], lines)}"
        cells = (
            [name, *(f"{inliers:.0f}, {error:.2f}" for inliers, error in ways.values())]
            for name, ways in found["pairs"].items()
        )
        ways = [in_words(NAME, way) for way in found["ways"]]
        text += f"\nInliers and error in degrees of each pair:\n\n{table(['', *ways], cells)}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--photos", type=Path, metavar="DIR", help="photographs with their poses.json")
    parser.add_argument(
        "--max-pairs", type=int, metavar="N", help="maximum number of photographed pairs (default: all)"
    )
    parser.add_argument(
        "--rendered", type=int, default=3, metavar="N", help="number of rendered pairs (default: %(default)s)"
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    sets = dict[str, Any]()
    count, width = (1, 800) if arguments.quick else (arguments.rendered, WIDTH)
    with TemporaryDirectory() as folder:
        given = {} if arguments.photos is None else {DRONE: read_photos(arguments.photos)[: arguments.max_pairs]}
        if count:
            title = f"Rendered, {width} x {3 * width // 4} pixels, blurred and noisy"
            given[title] = render_photos(Path(folder), count, width)
        for title, jobs in given.items():
            sets[title] = summarise(jobs, measure_all(jobs))
    return {"sets": sets}


if __name__ == "__main__":  # one matching method, in a separate process
    print(json.dumps(measure(json.load(sys.stdin), sys.argv[1])))

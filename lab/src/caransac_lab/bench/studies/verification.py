"""Many pairs verified by caransac and by COLMAP, and a run that is killed halfway and resumed.

Writes synthetic pairs to a COLMAP database. One copy is verified with ``caransac verify``, another with COLMAP. A third
run is killed when half of its pairs are written, and resumed; its two_view_geometries must equal those of the first.
Both tools use all cores and their default options; caransac also runs with COLMAP's threshold. Needs the extra 'bench'.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from caransac._support.batch import count_cores, map_ordered
from caransac._support.processes import ProcessPool
from caransac.synthetic import SyntheticPair
from caransac.verification.colmap import MAX_IMAGES
from caransac.verification.pair_records import MAX_ERROR_PX
from caransac_lab.bench.publication import FAILED, Content, columns_table
from caransac_lab.synthetic import random_pair

NAME = "verification"
Truth = dict[int, np.ndarray]


def make_one(index: int, num_matches: int) -> SyntheticPair:
    """Create pair number `index`, with 30 to 90 % right matches, as after a ratio test."""
    rng = np.random.default_rng([index, 5])
    return random_pair(rng, num_points=num_matches, inlier_ratio=rng.uniform(0.3, 0.9))


def make_database(path: Path, num_pairs: int, num_matches: int) -> Truth:
    """Write synthetic pairs as a database after matching. Return which matches are right, by pair number."""
    truth: Truth = {}
    every = np.arange(num_matches, dtype=np.uint32)
    with (
        ProcessPool(count_cores()) as pool,
        pycolmap.Database.open(path) as database,
        pycolmap.DatabaseTransaction(database),
    ):
        for index, pair in enumerate(map_ordered(partial(make_one, num_matches=num_matches), range(num_pairs), pool)):
            ids = []
            for side, points, camera in ((1, pair.points1, pair.camera1), (2, pair.points2, pair.camera2)):
                camera_id = database.write_camera(pycolmap.Camera(**camera.to_dict(), has_prior_focal_length=True))
                image = pycolmap.Image(name=f"{index:05d}-{side}.png", camera_id=camera_id)
                ids.append(database.write_image(image))
                database.write_keypoints(ids[-1], points.astype(np.float32))
            database.write_matches(*ids, np.stack([every, every], axis=1))
            truth[MAX_IMAGES * ids[0] + ids[1]] = pair.inliers
    return truth


def command(database: Path, workers: int) -> list[str]:
    """Return the command that verifies a database."""
    return [sys.executable, "-m", "caransac", "verify", str(database), "--workers", str(workers)]


def run_caransac(database: Path, workers: int, *options: str) -> None:
    """Run ``caransac verify``, including the start of the interpreter."""
    subprocess.run([*command(database, workers), *options], check=True, stdout=subprocess.DEVNULL)


def run_caransac_4px(database: Path, workers: int) -> None:
    """Run ``caransac verify`` with COLMAP's threshold."""
    run_caransac(database, workers, "--max-error", "4")


def run_colmap(database: Path, workers: int) -> None:
    """Run COLMAP's own verification."""
    pycolmap.geometric_verification(database, pycolmap.GeometricVerifierOptions(num_threads=workers))


TOOLS = {"caransac": run_caransac, "caransac, 4 px": run_caransac_4px, "COLMAP": run_colmap}


def measure(run: Callable[[Path, int], None], database: Path, workers: int, num_pairs: int) -> dict[str, Any]:
    """Measure the time of a run. Processor time is the most reliable if others use the machine."""
    started, before = time.perf_counter(), os.times()
    run(database, workers)
    seconds, cpu_s = time.perf_counter() - started, sum(os.times()[:4]) - sum(before[:4])
    return {
        "pairs": num_pairs,
        "seconds": round(seconds, 1),
        "pairs_per_second": round(num_pairs / seconds, 1),
        "cpu_ms_per_pair": round(1e3 * cpu_s / num_pairs, 1),
    }


def kill_and_resume(database: Path, workers: int, num_pairs: int) -> int:
    """Kill a run when half of the pairs are written, then resume it. Return the number written by then."""
    process = subprocess.Popen(command(database, workers), stdout=subprocess.DEVNULL)
    while count_rows(database) < num_pairs // 2 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = count_rows(database)
    if written == num_pairs:
        raise RuntimeError("the run ended before it was killed; use more pairs")
    run_caransac(database, workers)
    return written


def count_rows(database: Path) -> int:
    """Count the rows of two_view_geometries."""
    return int(query(database, "SELECT count(*) FROM two_view_geometries")[0][0])


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    connection = sqlite3.connect(database, timeout=60)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def assess(database: Path, truth: Truth) -> dict[str, float]:
    """Return, for the pairs in `truth`, the number of verified pairs, and the recall and precision of their matches."""
    found = right = pairs = 0
    for key, rows, data in query(database, "SELECT pair_id, rows, data FROM two_view_geometries WHERE rows > 0"):
        if key in truth:
            chosen = np.frombuffer(data, np.uint32).reshape(rows, 2)[:, 0]
            found, right, pairs = found + rows, right + int(truth[key][chosen].sum()), pairs + 1
    total = sum(int(inliers.sum()) for inliers in truth.values())
    return {
        "verified": round(pairs / len(truth), 4),
        "recall": round(right / total, 4),
        "precision": round(right / max(found, 1), 4),
    }


def compare(num_pairs: int, num_colmap: int, num_matches: int, workers: int) -> dict[str, Any]:
    """Run the whole comparison. COLMAP gets the first `num_colmap` pairs, on which both are assessed."""
    with tempfile.TemporaryDirectory() as name:
        matched = Path(name) / "matched.db"
        truth = make_database(matched, num_pairs, num_matches)
        assessed = {key: truth[key] for key in sorted(truth)[:num_colmap]}
        copies = {tool: Path(name) / f"{tool}.db" for tool in (*TOOLS, "killed")}
        for copy in copies.values():
            shutil.copyfile(matched, copy)
        with sqlite3.connect(copies["COLMAP"]) as connection:
            connection.execute("DELETE FROM matches WHERE pair_id > ?", (max(assessed),))
        connection.close()
        rows: dict[str, dict[str, Any]] = {}
        for tool, run in TOOLS.items():
            count = len(assessed) if tool == "COLMAP" else num_pairs
            rows[tool] = measure(run, copies[tool], workers, count) | assess(copies[tool], assessed)
        written = kill_and_resume(copies["killed"], workers, num_pairs)
        everything = "SELECT * FROM two_view_geometries ORDER BY pair_id"
        identical = query(copies["killed"], everything) == query(copies["caransac"], everything)
    return {
        "matches_per_pair": num_matches,
        "workers": workers,
        "rows": rows,
        "killed_after": written,
        "resumed_identical": identical,
    }


def as_markdown(content: dict[str, Any]) -> str:
    """Format the comparison as a table."""
    columns = ("pairs", "seconds", "pairs_per_second", "cpu_ms_per_pair", "verified", "recall", "precision")
    rows = content["rows"]
    text = f"# Verification of a COLMAP database\n\nSynthetic pairs of {content['matches_per_pair']} matches, "
    text += f"{content['workers']} workers; times include the start of the programs. caransac's threshold is "
    text += f"{content.get('max_error_px', 2.0):g} px, "
    text += "COLMAP's 4 px. Recall: found share of the right matches; precision: right share of the found ones.\n\n"
    text += columns_table(rows, {name: name.replace("_", " ") for name in columns})
    resumed = "identical" if content["resumed_identical"] else "DIFFERENT"
    killed, pairs = content["killed_after"], rows["caransac"]["pairs"]
    return f"{text}\nKilled after {killed} of {pairs} pairs and resumed: {resumed}.\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--pairs", type=int, default=5000, metavar="N", help="number of pairs (default: %(default)s)")
    parser.add_argument(
        "--colmap-pairs",
        type=int,
        default=500,
        metavar="N",
        help="number of pairs that COLMAP verifies (default: %(default)s)",
    )
    parser.add_argument(
        "--matches", type=int, default=1000, metavar="N", help="matches per pair (default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help="processes of either program (default: all cores)",
    )


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    counts = (400, 20) if arguments.quick else (arguments.pairs, arguments.colmap_pairs)
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    result = compare(*counts, arguments.matches, arguments.workers)
    bad = [] if result["resumed_identical"] else ["the resumed run differs"]
    return {"max_error_px": MAX_ERROR_PX} | result | {FAILED: bad}

"""Commands that are interrupted at random moments, once or ten times, and resumed until they are done.

Runs small versions of ``caransac verify`` on a database and on hloc's files, of ``caransac-lab bench`` and of
``caransac-lab train``. All processes of a command get SIGINT, as from a terminal, at a random moment between the first
line of code and two thirds of the duration of an uninterrupted run. It must end within two seconds, with exit code 130
and one line that explains how to continue. All finished work must still be there and equal that of an uninterrupted
run. The next run resumes it. Needs the extras 'bench' and 'train'.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pycolmap

from caransac.synthetic import make_pair
from caransac.verification import HlocFiles
from caransac_lab.bench.publication import FAILED, Content, columns_table

NAME = "interrupts"
SOON_S, HANGS_S = 2.0, 60.0
LATEST = 2 / 3  # latest moment of an interruption, as a share of an uninterrupted run; a resumed run has less to do
STATUSES = ("in time", "later", "hung", "lost", "ended badly", "had ended before")
PROGRESS = re.compile(r"[\w ,]+: \d+/\d+|  ")
PROGRAM = """
import sys
if sys.argv[1] in ("bench", "train"):
    from caransac_lab.cli import main
else:
    from caransac.cli import main
if __name__ == "__main__":
    print("ready", flush=True)
    sys.exit(main())
"""
Items = frozenset[Hashable]


@dataclass(frozen=True)
class Scenario:
    """A command that can be interrupted and resumed.

    Attributes:
        name: name of the scenario.
        share: share of all runs.
        prepare: function that creates its inputs in a folder.
        arguments: function that returns the arguments of the command for a folder.
        done: function that returns the finished work in a folder, in pieces that are never undone.
    """

    name: str
    share: float
    prepare: Callable[[Path], None]
    arguments: Callable[[Path], Sequence[str]]
    done: Callable[[Path], Items]


def make_database(folder: Path, num_pairs: int = 240) -> None:
    """Create a database of synthetic pairs after matching."""
    every = np.arange(120, dtype=np.uint32)
    with pycolmap.Database.open(folder / "database.db") as database:
        for index in range(num_pairs):
            pair, ids = make_pair(len(every), 0.4, seed=index), []
            for side, points, camera in ((1, pair.points1, pair.camera1), (2, pair.points2, pair.camera2)):
                camera_id = database.write_camera(pycolmap.Camera(**camera.to_dict(), has_prior_focal_length=True))
                image = pycolmap.Image(name=f"{index:05d}-{side}.png", camera_id=camera_id)
                ids.append(database.write_image(image))
                database.write_keypoints(ids[-1], points.astype(np.float32))
            database.write_matches(*ids, np.stack([every, every], axis=1))


def read_database(folder: Path) -> Items:
    """Read the rows of the table of geometries."""
    connection = sqlite3.connect(folder / "database.db", timeout=60)
    try:
        return frozenset(connection.execute("SELECT * FROM two_view_geometries"))
    finally:
        connection.close()


def make_hloc(folder: Path, num_pairs: int = 200) -> None:
    """Create files of synthetic pairs in hloc's layout."""
    with h5py.File(folder / "features.h5", "w") as features, h5py.File(folder / "matches.h5", "w") as matches:
        for index in range(num_pairs):
            pair = make_pair(120, 0.4, seed=index)
            features[f"{index}-1.jpg/keypoints"] = pair.points1
            features[f"{index}-2.jpg/keypoints"] = pair.points2
            matches[f"{index}-1.jpg/{index}-2.jpg/matches0"] = np.arange(120)
    (folder / "pairs.txt").write_text("".join(f"{i}-1.jpg {i}-2.jpg\n" for i in range(num_pairs)))


def hloc_arguments(folder: Path) -> Sequence[str]:
    """Return the command for hloc's files."""
    named = {"features": "features.h5", "matches": "matches.h5", "pairs": "pairs.txt", "out": "verified.h5"}
    return ("verify", "--workers=2", *(f"--{name}={folder / file}" for name, file in named.items()))


def read_hloc(folder: Path) -> Items:
    """Read the pairs that the command would keep, and at the end the existence of the output."""
    inputs = [folder / name for name in ("features.h5", "matches.h5", "pairs.txt")]
    files = HlocFiles(*inputs, folder / "verified.h5")
    kept = {(report.image1, report.inliers, report.config, report.confidence) for report in files.kept}
    files.close()
    return frozenset({*kept, "finished"} if (folder / "verified.h5").exists() else kept)


def bench_arguments(folder: Path) -> Sequence[str]:
    """Return the arguments of a small benchmark."""
    what = ("synthetic:12", "--methods", "LM-LO", "--timing-pairs", "1", "--workers", "2")
    return ("bench", *what, "--out", str(folder / "out"))


def read_bench(folder: Path) -> Items:
    """Read the outcomes, without their times, and the files of a finished run."""
    journal = folder / "out" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)[1:] if journal.exists() else []
    outcomes = (json.loads(line) for line in lines if line.endswith("\n"))
    done = {(tuple(key), outcome["status"], outcome["rotation_deg"]) for key, outcome in outcomes}
    return frozenset({*done, "finished"} if (folder / "out" / "table.md").exists() else done)


def train_arguments(folder: Path) -> Sequence[str]:
    """Return the arguments of a small training run."""
    small = {"steps": 30, "epoch": 12, "width": 8, "batch": 4, "val-pairs": 3, "evidence-runs": 12, "workers": 2}
    return ("train", "--resume", f"--out={folder / 'out'}", *(f"--{name}={value}" for name, value in small.items()))


def read_train(folder: Path) -> Items:
    """Read the steps in the checkpoint, and at the end the weights."""
    from caransac_lab.training.checkpoint import read_checkpoint

    checkpoint, weights = folder / "out" / "checkpoint.pt", folder / "out" / "weights.npz"
    done: set[Hashable] = set()
    if checkpoint.exists():
        done |= set(range(read_checkpoint(checkpoint)["state"]["step"]))
    if weights.exists():
        with np.load(weights) as arrays:
            done.add(blake2b(b"".join(arrays[name].tobytes() for name in sorted(arrays))).digest())
    return frozenset(done)


def nothing(folder: Path) -> None:  # for commands without inputs
    """Prepare nothing."""


SCENARIOS = (
    Scenario(
        "verify, database",
        0.55,
        make_database,
        lambda folder: ("verify", str(folder / "database.db"), "--workers=2"),
        read_database,
    ),
    Scenario("verify, hloc", 0.25, make_hloc, hloc_arguments, read_hloc),
    Scenario("bench", 0.16, nothing, bench_arguments, read_bench),
    Scenario("train", 0.04, nothing, train_arguments, read_train),
)


@dataclass(frozen=True)
class Outcome:
    """Outcome of an interrupted run.

    Attributes:
        status: one of `STATUSES`.
        seconds: seconds from the first interruption to the end of the last process.
        details: description of the error.
    """

    status: str
    seconds: float = 0.0
    details: str = ""


def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start a command. Return when its own code begins."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def interrupt(arguments: Sequence[str], delay_s: float, times: int) -> tuple[int | None, str, float]:
    """Interrupt a command after a while. Return its exit code, its output, and the seconds until it ended.

    The exit code is None if it hung. The seconds are negative if it had ended before.
    """
    process = start(arguments)
    try:
        process.wait(delay_s)
        return process.returncode, process.communicate()[1], -1.0
    except subprocess.TimeoutExpired:
        started = time.monotonic()
    try:
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.03 if times > 1 else 0.0)
    except ProcessLookupError:
        pass
    try:
        # Returns when the workers have ended, too, because they keep the pipes open.
        errors = process.communicate(timeout=HANGS_S)[1]
        return process.returncode, errors, time.monotonic() - started
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[1], HANGS_S


def assess(code: int | None, errors: str, seconds: float, before: Items, after: Items, whole: Items) -> Outcome:
    """Return the outcome of a run."""
    if code is None:
        return Outcome("hung", seconds, errors)
    if lost := (before - after) | (after - whole):
        return Outcome("lost", seconds, f"{len(lost)} pieces: {errors}")
    if seconds < 0 or (code == 0 and after == whole):  # the interruption came too late
        return Outcome("had ended before" if code == 0 else "ended badly", 0.0, errors)
    lines = [line for line in errors.splitlines() if not PROGRESS.match(line)]
    if code != 130 or len(lines) != 1 or not re.match(r"caransac(-lab)?: interrupted; .*the same command", lines[0]):
        return Outcome("ended badly", seconds, f"exit code {code}: {errors}")
    return Outcome("in time" if seconds <= SOON_S else "later", seconds, errors if seconds > SOON_S else "")


def run(scenario: Scenario, folder: Path, runs: int, seed: int) -> list[Outcome]:
    """Interrupt a command `runs` times. Start it again whenever it finishes."""
    rng = random.Random(f"{scenario.name} {seed}")
    inputs, place, outcomes = folder / "inputs", folder / "place", list[Outcome]()
    inputs.mkdir(parents=True)
    scenario.prepare(inputs)
    shutil.copytree(inputs, place)
    process, started = start(scenario.arguments(place)), time.monotonic()
    errors = process.communicate()[1]
    if process.returncode != 0:
        raise RuntimeError(f"{scenario.name}: {errors}")
    duration_s, whole = time.monotonic() - started, scenario.done(place)
    before = whole
    for _ in range(runs):
        if before == whole:
            shutil.rmtree(place)
            shutil.copytree(inputs, place)
            before = scenario.done(place)
        ended = interrupt(scenario.arguments(place), rng.uniform(0, LATEST * duration_s), rng.choice((1, 10)))
        after = scenario.done(place)
        outcomes.append(assess(*ended, before, after, whole))
        before = after
    return outcomes


def summarise(outcomes: list[Outcome]) -> dict[str, float]:
    """Count the runs by outcome, and summarise the seconds."""
    counts = {status: sum(each.status == status for each in outcomes) for status in STATUSES}
    seconds = [each.seconds for each in outcomes if each.seconds > 0] or [0.0]
    times = {"median seconds": round(float(np.median(seconds)), 2), "most seconds": round(max(seconds), 2)}
    return {"runs": len(outcomes)} | counts | times


def as_markdown(content: dict[str, Any]) -> str:
    """Format the number of runs by outcome."""
    lines = [
        "# Interrupted runs",
        "",
        "Ctrl-C at random moments, once or ten times within 0.3 s. In time: ended within two seconds, exit code 130, "
        "one line that explains how to",
        "continue, and no loss of finished work. Lost: finished work was lost. Had ended before: the interruption "
        "came too late.",
        "",
    ]
    return "\n".join(lines) + "\n" + columns_table(content["commands"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--runs", type=int, default=200, metavar="N", help="total number of runs (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="commands at a time (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the moments (default: %(default)s)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    count = 20 if arguments.quick else arguments.runs
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(arguments.jobs) as pool:
        running = {
            scenario.name: pool.submit(
                run, scenario, Path(name) / str(i), round(scenario.share * count), arguments.seed
            )
            for i, scenario in enumerate(SCENARIOS)
        }
        outcomes = {name: done.result() for name, done in running.items()}
    good = ("in time", "had ended before", "later")  # "later" depends on other load of the machine
    bad = [each for found in outcomes.values() for each in found if each.status not in good]
    return {
        "commands": {name: summarise(found) for name, found in outcomes.items()},
        FAILED: [f"{each.status} after {each.seconds:.1f} s: {each.details}" for each in bad],
    }

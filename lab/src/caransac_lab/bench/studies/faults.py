"""Commands with an injected fault, in each run at another call. They must lose nothing and resume.

Runs small versions of ``caransac verify`` on a database and on hloc's files, both also with ``--overwrite``, of
``caransac-lab bench`` and of ``caransac-lab train``. An undisturbed run records their calls that open, read, write,
flush, sync, rename and remove files, execute and commit SQL, read arrays of HDF5 files and write checkpoints. Then one
of these calls fails: it raises an OSError as from a full disk, or a MemoryError, or the process gets SIGINT or SIGKILL.
Existing data must survive, the same command must resume, and the result must equal that of the undisturbed run. Each
run is a fork of this process. A thread does the work of worker processes; ``interrupts.py`` tests those. Needs the
extras 'bench' and 'train', and Linux or macOS.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # before numpy is imported: forks have one thread

import json
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import h5py
import numpy as np
import torch

from caransac_lab.bench.publication import FAILED, Content, columns_table
from caransac_lab.bench.studies.fault_injection import KINDS, Fault, choose, run
from caransac_lab.bench.studies.interrupts import (
    bench_arguments,
    hloc_arguments,
    make_database,
    make_hloc,
    nothing,
    read_train,
)

NAME = "faults"
STATUSES = ("continued", "lost", "differs", "ended badly", "hung")


@dataclass(frozen=True)
class Scenario:
    """A command that resumes after a fault.

    Attributes:
        name: name of the scenario.
        share: share of all faults.
        prepare: function that creates its inputs in a folder.
        arguments: function that returns the arguments of the command for a folder.
        result: function that returns what must be equal at the end.
        pieces: function that returns, by name, what must survive a fault or equal the final result.
    """

    name: str
    share: float
    prepare: Callable[[Path], None]
    arguments: Callable[[Path], Sequence[str]]
    result: Callable[[Path], Hashable]
    pieces: Callable[[Path], dict[Hashable, Hashable]]


def assess(scenario: Scenario, fault: Fault, inputs: Path, place: Path, whole: Path) -> tuple[str, str]:
    """Run a command with a fault, then again without. Return the outcome and details."""
    rmtree(place, ignore_errors=True)
    copytree(inputs, place)
    before, end = scenario.pieces(inputs), scenario.pieces(whole)
    code, said, _ = run(scenario.arguments(place), place, fault)
    expected = {"SIGINT": (0, 130), "SIGKILL": (-signal.SIGKILL,)}.get(fault.kind, (0, 2, 3))
    if code is None:
        return "hung", said
    if code not in expected or "Traceback" in said:
        return "ended badly", f"exit code {code}: {said}"
    try:
        after = scenario.pieces(place)
    except Exception as error:
        return "lost", f"{type(error).__name__}: {error}"
    if lost := [name for name in before | after if after.get(name) not in (before.get(name), end.get(name))]:
        return "lost", f"{lost[:3]}: {said}"
    if lost := [name for name in before if name not in after]:
        return "lost", f"{lost[:3]}: {said}"
    code, said, _ = run(scenario.arguments(place), place)
    if code != 0:
        return "hung" if code is None else "ended badly", f"when it was continued, exit code {code}: {said}"
    if scenario.result(place) != scenario.result(whole):
        return "differs", said
    return "continued", ""


def inject(scenario: Scenario, folder: Path, count: int) -> list[tuple[Fault, str, str]]:
    """Inject the faults of a scenario. Return the outcome of each."""
    inputs, place, whole = (folder / name for name in ("inputs", "place", "whole"))
    inputs.mkdir(parents=True)
    scenario.prepare(inputs)
    copytree(inputs, whole)
    code, said, sites = run(scenario.arguments(whole), whole, watch=True)
    if code != 0:
        raise RuntimeError(f"{scenario.name}: {said}")
    outcomes = []
    for fault in choose(sites, count, scenario.name):
        status, details = assess(scenario, fault, inputs, place, whole)
        outcomes.append((fault, status, details))
        if status != "continued":
            file, line, call = fault.site
            place_of_fault = f"{Path(file).name}:{line} {call} ({fault.number})"
            print(
                f"{scenario.name}: {status}: {fault.kind} at {place_of_fault}: {details}", file=sys.stderr, flush=True
            )
    return outcomes


def make_verified_database(folder: Path) -> None:
    """Create a database whose pairs were verified with another seed."""
    make_database(folder, 40)
    run(("verify", str(folder / "database.db"), "--seed=5"), folder)


def database_pieces(folder: Path) -> dict[Hashable, Hashable]:
    """Return the geometries by pair, and all other rows of COLMAP's tables."""
    connection = sqlite3.connect(folder / "database.db", timeout=60)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        pieces: dict[Hashable, Hashable] = {
            row[0]: row for row in connection.execute("SELECT * FROM two_view_geometries")
        }
        for table in ("cameras", "images", "keypoints", "matches"):
            pieces[table] = tuple(connection.execute(f"SELECT * FROM {table}"))
        return pieces
    finally:
        connection.close()


def database_result(folder: Path) -> Hashable:
    """Return all pieces of a database, and whether everything is done."""
    connection = sqlite3.connect(folder / "database.db")
    try:
        left = connection.execute("SELECT count(*) FROM caransac_geometries WHERE outdated").fetchone()
    finally:
        connection.close()
    return left, tuple(database_pieces(folder).items())


def make_verified_hloc(folder: Path) -> None:
    """Create files of hloc whose pairs were verified with another seed."""
    make_hloc(folder, 20)
    run((*hloc_arguments(folder), "--seed=5"), folder)


def hloc_pieces(folder: Path) -> dict[Hashable, Hashable]:
    """Return the inputs, and the groups of the output by name, without times."""
    inputs = ("features.h5", "matches.h5", "pairs.txt")
    pieces: dict[Hashable, Hashable] = {name: (folder / name).read_bytes() for name in inputs}
    if (folder / "verified.h5").exists():
        with h5py.File(folder / "verified.h5") as file:
            for name in (f"{first}/{second}" for first in file for second in file[first]):
                group = file[name]
                about = {key: str(value) for key, value in group.attrs.items() if key not in ("ms", "settings")}
                arrays = ((key, group[key][()].tobytes()) for key in sorted(group))
                pieces[name] = (*arrays, *sorted(about.items()))
    return pieces


def hloc_result(folder: Path) -> Hashable:
    """Return all pieces of hloc's files, and the files beside them."""
    return (folder / "verified.h5.partial").exists(), tuple(sorted(hloc_pieces(folder).items(), key=str))


def bench_pieces(folder: Path) -> dict[Hashable, Hashable]:
    """Return the outcomes by key, without their times."""
    journal = folder / "out" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)[1:] if journal.exists() else []
    outcomes = (json.loads(line) for line in lines if line.endswith("\n"))
    return {tuple(key): (outcome["status"], outcome["rotation_deg"]) for key, outcome in outcomes}


def bench_result(folder: Path) -> Hashable:
    """Return all outcomes and the published figures."""
    rows = json.loads((folder / "out" / "results.json").read_text())["rows"]
    assert (folder / "out" / "table.md").exists() and (folder / "out" / "table.csv").exists()
    return json.dumps([row["figures"] for row in rows]), tuple(sorted(bench_pieces(folder).items()))


def train_arguments(folder: Path) -> Sequence[str]:
    """Return the arguments of a very small training run."""
    small = {"steps": 4, "epoch": 2, "width": 8, "batch": 2, "val-pairs": 2, "evidence-runs": 4, "workers": 1}
    return ("train", "--resume", f"--out={folder / 'out'}", *(f"--{name}={value}" for name, value in small.items()))


def train_pieces(folder: Path) -> dict[Hashable, Hashable]:
    """Return the steps in the checkpoint, and the weights."""
    done = read_train(folder)
    return {each if isinstance(each, int) else "weights": each for each in done}


def train_result(folder: Path) -> Hashable:
    """Return the weights, the log without its times, and the card."""
    lines = [line.split(",") for line in (folder / "out" / "log.csv").read_text().splitlines()]
    timed = lines[0].index("seconds")
    card = json.loads((folder / "out" / "weights.json").read_text())
    log = tuple(tuple(words[:timed] + words[timed + 1 :]) for words in lines)
    return read_train(folder), log, json.dumps({name: card[name] for name in card if name != "hours"})


def with_overwrite(arguments: Callable[[Path], Sequence[str]]) -> Callable[[Path], Sequence[str]]:
    """Return the arguments with --overwrite."""
    return lambda folder: (*arguments(folder), "--overwrite")


def verify_arguments(folder: Path) -> Sequence[str]:
    """Return the command for a database."""
    return ("verify", str(folder / "database.db"), "--report", str(folder / "pairs.csv"))


DATABASE = (database_result, database_pieces)
HLOC = (hloc_result, hloc_pieces)
SCENARIOS = (
    Scenario("verify, database", 0.2, lambda folder: make_database(folder, 40), verify_arguments, *DATABASE),
    Scenario("verify --overwrite, database", 0.2, make_verified_database, with_overwrite(verify_arguments), *DATABASE),
    Scenario("verify, hloc", 0.2, lambda folder: make_hloc(folder, 20), hloc_arguments, *HLOC),
    Scenario("verify --overwrite, hloc", 0.2, make_verified_hloc, with_overwrite(hloc_arguments), *HLOC),
    Scenario("bench", 0.1, nothing, bench_arguments, bench_result, bench_pieces),
    Scenario("train", 0.1, nothing, train_arguments, train_result, train_pieces),
)


def summarise(outcomes: list[tuple[Fault, str, str]]) -> dict[str, int]:
    """Count the faults, their places and kinds, and their outcomes."""
    counts = Counter(word for fault, status, _ in outcomes for word in (fault.kind, status))
    places = len({fault.site for fault, *_ in outcomes})
    return {"faults": len(outcomes), "places": places} | {word: counts[word] for word in (*KINDS, *STATUSES)}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the number of runs by outcome."""
    lines = [
        "# Injected faults",
        "",
        "One call that opens, reads, writes, flushes, syncs, renames or removes a file, executes SQL or writes a "
        "checkpoint fails,",
        "and the same command runs again. Continued: no earlier data were lost, and the result equals that of an "
        "undisturbed run.",
        "",
        "Places: number of different places in the code at which a call failed.",
        "",
    ]
    return "\n".join(lines) + "\n" + columns_table(content["commands"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--faults", type=int, default=240, metavar="N", help="number of faults (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME", help="run only this command")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    count = 20 if arguments.quick else arguments.faults
    torch.set_num_threads(1)
    np.seterr(all="warn")
    with tempfile.TemporaryDirectory() as name:
        found = {
            scenario.name: inject(scenario, Path(name) / str(number), round(scenario.share * count))
            for number, scenario in enumerate(SCENARIOS)
            if arguments.only in (None, scenario.name)
        }
    return {
        "commands": {name: summarise(outcomes) for name, outcomes in found.items()},
        FAILED: [
            f"{status}: {details}" for each in found.values() for _, status, details in each if status != "continued"
        ],
    }

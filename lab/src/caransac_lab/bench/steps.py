"""Produce all published results from one clean commit: `make publish`, or a small version: `make publish-quick`.

DIR has the folders realpairs, homographies, photos, images and projects (those of the study `third_party`). Steps
without data are skipped and listed in the summary. A step is also skipped if its file was made by the same code and
command, so an interrupted run resumes. If a step fails, its previous file stays. At the end, all tables are made from
the files.

With two or more cores, two steps run at a time. A step that uses all cores, or that times code with several threads,
runs without any other step. The other steps that measure time run one at a time. By default every method gets the same
few pairs of a scene, the first ones of a fixed shuffle.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from caransac.synthetic import make_pair
from caransac_lab.bench import machine
from caransac_lab.bench.publication import LEFT_OUT, command_of
from caransac_lab.datasets import split_score_kind

ROOT = machine.CLONE
WORK = ROOT / "build" / "publish"
QUICK = ROOT / "build" / "publish-quick"
SINGLE_THREAD = dict.fromkeys(machine.THREADS, "1")
FEATURES = ("rootsift", "aliked", "orb8k")
VAL = tuple(f"realpairs/{name}/val" for name in FEATURES)
SCORED = (*VAL, *(f"realpairs/{name}/val=confidence" for name in ("xfeat", "aliked_lg")))
UNSCORED = tuple(f"{folder.partition('=')[0]}=none" for folder in SCORED)
TRAIN = tuple(f"realpairs/{name}/train" for name in FEATURES)
UNRELATED = ("realpairs/rootsift/val_unrelated",)
PLANES = tuple(f"homographies/{name}/val" for name in FEATURES)
MAPPED = tuple(f"realpairs/rootsift/val/{name}" for name in ("entry_p10", "herz_jesus_p25", "llff_fern"))
SPARSE = tuple(
    f"images/{name}" for name in ("train/kitchen", "train/lund", "train/south_building", "val/herz_jesus_p25")
)

LASER = ("images/val/entry_p10", "images/val/herz_jesus_p25")


@dataclass(frozen=True)
class Step:
    """A result file and the study that creates it.

    Attributes:
        name: name of the study and of its file, NAME.json.
        words: arguments of the study.
        full: arguments of the long version; None if they are the same.
        data: folders of the data by their option, "" for positional arguments. Missing folders are left out. A folder
            may end in the kind of its scores, ``=confidence`` or ``=none``.
        needs: option whose data are required; None if the step needs no data.
        minutes: measured duration on idle cores.
        whole: whether it uses all cores, or times code that does, so that nothing may run at the same time.
        timed: whether it mainly measures times, so that no other such step may run at the same time.
    """

    name: str
    words: tuple[str, ...] = ()
    full: tuple[str, ...] | None = None
    data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: str | None = None
    minutes: float = 1.0
    whole: bool = False
    timed: bool = False

    def arguments(self, data: Path, quick: bool) -> list[str]:
        """Return all arguments of the command ``caransac-lab``."""
        words = [*self.words, *(["--quick"] if quick else [])]
        for option, folders in self.data.items():
            found = [str(data / folder) for folder in folders if is_there(data / folder)]
            words = [*words, option, *found] if option and found else [*found, *words] if not option else words
        return ["study", self.name, *words]

    def lacks(self, data: Path) -> str | None:
        """Return the reason why it cannot run, or None."""
        if self.needs is not None and not any(is_there(data / folder) for folder in self.data[self.needs]):
            return f"no {', '.join(self.data[self.needs])}"
        return None

    def fits(self, running: Collection[Step]) -> bool:
        """Return True if it may run at the same time as others."""
        if not running:
            return True
        return not (self.whole or any(each.whole or (self.timed and each.timed) for each in running))


def is_there(folder: Path) -> bool:
    """Return True if a folder exists, whatever the kind of its scores."""
    return split_score_kind(folder)[0].exists()


def most_pairs(number: int) -> tuple[str, ...]:
    """Return the option for a maximum number of pairs per scene."""
    return "--max-pairs", str(number)


# The module of a study documents it. Minutes are those of both cores if a step is `whole`, otherwise of one.
STEPS = (
    Step("package", minutes=0.5, timed=True),
    Step("worked_pair", minutes=0.1),
    Step("speed", words=most_pairs(4), full=most_pairs(12), data={"--data": VAL}, minutes=6, whole=True),
    Step("peers", words=most_pairs(20), full=("--seeds", "5"), data={"": SCORED}, needs="", minutes=8, whole=True),
    Step("unscored", words=most_pairs(10), full=("--seeds", "5"), data={"": UNSCORED}, needs="", minutes=8, whole=True),
    Step(
        "tuned",
        words=(*most_pairs(5), "--tune-pairs", "1"),
        full=("--tune-pairs", "8"),
        data={"": VAL[:1], "--tune": TRAIN[:1]},
        needs="",
        minutes=3,
        whole=True,
    ),
    Step(
        "paper",
        words=most_pairs(10),
        full=most_pairs(40),
        data={"": VAL, "--train": TRAIN[:1]},
        needs="--train",
        minutes=9,
        whole=True,
    ),
    Step("focal", words=most_pairs(15), full=most_pairs(30), data={"": VAL}, needs="", minutes=2),
    Step("focal_scenes", words=most_pairs(40), full=(), data={"": VAL}, needs="", minutes=1.5),
    Step("focal_pooling", words=("--workers", "1"), minutes=2.5),
    Step("lenses", words=most_pairs(24), full=(), data={"": VAL}, needs="", minutes=9),
    Step(
        "absolute",
        words=("--seeds", "5"),
        full=(),
        data={"": VAL, "--unrelated": UNRELATED},
        needs="",
        minutes=9,
    ),
    Step(
        "hard_scenes",
        words=("--pairs", "100", *most_pairs(40)),
        full=(),
        data={"--val": VAL, "--unrelated": UNRELATED},
        minutes=4,
    ),
    Step("calibration", data={"": VAL, "--unrelated": UNRELATED}, needs="", minutes=0.7),
    Step("robustness", minutes=1),
    Step("covariance", data={"--val": VAL}, minutes=0.7),
    Step("homographies", words=("--synthetic", "30"), full=(), data={"": PLANES}, minutes=3),
    Step("thresholds", words=most_pairs(4), full=(), data={"": VAL}, needs="", minutes=3),
    Step("dense", full=("--counts", "50000", "200000", "1000000"), minutes=4, timed=True),
    Step("any_scene", words=("--seeds", "5"), full=(), minutes=1.5),
    Step(
        "photos",
        words=(*most_pairs(3), "--rendered", "1"),
        full=(),
        data={"--photos": ("photos/drone",)},
        minutes=3.5,
        timed=True,
    ),
    Step(
        "photographs", data={"": SCORED, "--photographs": ("images/val",)}, needs="--photographs", minutes=6, timed=True
    ),
    Step("reconstruction", data={"--photographs": SPARSE}, minutes=8, timed=True),
    Step("keypoints", data={"": LASER}, needs="", minutes=5),
    Step("real_databases", data={"": MAPPED}, needs="", minutes=3, timed=True),
    Step("verification", words=("--pairs", "3000", "--colmap-pairs", "200"), full=(), minutes=1.5, whole=True),
    Step("hostile_databases", minutes=0.5),
    Step(
        "third_party",
        data={
            "--projects": ("projects",),
            "--pairs": VAL[:1],
            "--homographies": ("homographies/rootsift/val",),
            "--photos": ("photos/drone",),
        },
        needs="--projects",
        minutes=2,
    ),
    Step("faults", words=("--faults", "96"), full=(), minutes=2),
    Step("interrupts", words=("--runs", "30"), full=("--runs", "200"), minutes=3, timed=True),
    Step(
        "ablation",
        words=("--problem", "E", "F", *most_pairs(16)),
        full=("--problem", "E", "F"),
        data={"": TRAIN},
        needs="",
        minutes=8,
        whole=True,
    ),
    Step("camera_ablation", full=most_pairs(16), data={"": TRAIN}, needs="", minutes=8, whole=True),
)


def changed_files() -> list[str]:
    """Return changed files that affect figures, which excludes published results and texts."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", *machine.DECIDING]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def is_made(path: Path, command: str) -> bool:
    """Return True if a file is the result of this command, from a commit with the same code."""
    if not path.is_file():
        return False
    made = json.loads(path.read_text()).get("made", {})
    return made.get("command") == command and is_same_code(str(made.get("commit")))


def is_same_code(commit: str) -> bool:
    """Return True if a commit differs from the present one only in published results and texts."""
    command = ["git", "-C", str(ROOT), "diff", "--quiet", commit, "HEAD", "--", *machine.DECIDING]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def make_quick_data(folder: Path) -> None:
    """Write synthetic pairs in the layout of the RANSAC Tutorial 2020, for studies that read real ones."""
    for place, scenes in (("val", 2), ("train", 1), ("val_unrelated", 1)):
        for number in range(scenes):
            scene = folder / "realpairs" / "rootsift" / place / f"made{number}"
            scene.mkdir(parents=True, exist_ok=True)
            _write_scene(scene, 10 * number + 100 * len(place), place != "val_unrelated")


def _write_scene(scene: Path, seed: int, with_truth: bool) -> None:
    arrays: dict[str, dict[str, np.ndarray]] = {name: {} for name in ("matches", "match_conf", "K1_K2", "R", "T")}
    for index in range(2):
        pair = make_pair(num_points=400, outlier_ratio=0.4, seed=seed + index)
        key = f"a{index}-b{index}"
        arrays["matches"][key] = np.concatenate([pair.points1, pair.points2], axis=1)
        arrays["match_conf"][key] = pair.scores
        arrays["K1_K2"][key] = np.stack([pair.camera1.K, pair.camera2.K])[None]
        arrays["R"] |= {f"a{index}": np.eye(3), f"b{index}": pair.R}
        arrays["T"] |= {f"a{index}": np.zeros(3), f"b{index}": pair.t}
    for name, found in arrays.items():
        if with_truth or name not in ("R", "T"):
            with h5py.File(scene / f"{name}.h5", "w") as file:
                for key, array in found.items():
                    file[key] = array


def run(words: Sequence[str], out: Path, log: Path) -> int:
    """Run a study, with its output in a log. Return its exit code."""
    command = [sys.executable, "-m", "caransac_lab", *words, "--out", str(out)]
    with log.open("w") as file:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | SINGLE_THREAD, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    return done.returncode


def make(step: Step, data: Path, results: Path, work: Path, quick: bool) -> str:
    """Create the file of a step, unless it is up to date. Return what happened."""
    why = step.lacks(data)
    if why is not None:
        return f"left out: {why}"
    words, target = step.arguments(data, quick), results / f"{step.name}.json"
    if not quick and is_made(target, command_of(words)):
        return "kept"
    out, log, started = work / target.name, work / f"{step.name}.log", time.monotonic()
    code = run(words, out, log)
    if code == LEFT_OUT:
        return f"left out: {log.read_text().splitlines()[-1]}"
    if code != 0:
        return f"FAILED with exit code {code}, see {log}"
    for path in (out, out.with_suffix(".md"), *work.glob(f"{step.name}-*.svg")):
        shutil.move(path, results / path.name)
    return f"made in {(time.monotonic() - started) / 60:.1f} min"


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Sort steps: those that run by themselves, then timed ones, then the rest; the longest of each kind first."""
    return sorted(steps, key=lambda step: (not step.whole, not step.timed, -step.minutes))


def publish(
    steps: Sequence[Step], data: Path, results: Path, work: Path, quick: bool, jobs: int = 1
) -> Iterator[tuple[str, str]]:
    """Run all outdated steps, several at a time. Yield the name of every step and what happened."""
    work.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    waiting, running = in_order(steps), dict[Future[str], Step]()
    with ThreadPoolExecutor(jobs) as pool:
        while waiting or running:
            while len(running) < jobs and (step := next((s for s in waiting if s.fits(running.values())), None)):
                waiting.remove(step)
                running[pool.submit(make, step, data, results, work, quick)] = step
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done).name, done.result()


def show_plan(steps: Sequence[Step]) -> None:
    """Print the steps in their order."""
    for step in in_order(steps):
        beside = "no other step" if step.whole else "no other timed step" if step.timed else ""
        print(f"{step.name:18}{step.minutes:5.1f} min  {beside}")
    alone = sum(step.minutes for step in steps if step.whole)
    others = sum(step.minutes for step in steps if not step.whole)
    print(f"{'in all':18}{alone + others / 2:5.1f} min  with two cores")

"""All published results from one clean commit: `make publish`; a little of everything in minutes: `make publish-quick`.

    python benchmarks/publish.py --data DIR [--only STEP ...]     results go to benchmarks/results
    python benchmarks/publish.py --data DIR --full                all pairs and seeds: hours instead of about one
    python benchmarks/publish.py --plan                           the steps, in their order, with the minutes they take
    python benchmarks/publish.py --quick [--out DIR]              synthetic data; results go to build/publish-quick

DIR has the folders realpairs, homographies, photos and projects (those of `third_party.py`); what of them is missing is
left out, and the summary says so. A step whose file has the present code and command is kept, so an interrupted run
continues where it was. A step that fails leaves the file of before. At the end all tables are made from the files.

With two cores or more, two steps run at a time. A step that uses all cores, or times what does, runs alone; of the
others whose figures are mainly times, one runs at a time. By default every method sees the same few pairs of a scene,
the first of a fixed shuffle.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np
from published import LEFT_OUT, RESULTS, command_of

import caransac
from caransac._support.batch import count_cores
from caransac.bench import machine
from caransac.synthetic import make_pair
from caransac.verification.build_identity import digest_of_package

HERE = Path(__file__).parent
ROOT = HERE.parent
WORK = ROOT / "build" / "publish"
QUICK = ROOT / "build" / "publish-quick"
SINGLE_THREAD = dict.fromkeys(machine.THREADS, "1")
FEATURES = ("rootsift", "aliked", "orb8k")
VAL = tuple(f"realpairs/{name}/val" for name in FEATURES)
TRAIN = tuple(f"realpairs/{name}/train" for name in FEATURES)
UNRELATED = ("realpairs/rootsift/val_unrelated",)
PLANES = tuple(f"homographies/{name}/val" for name in FEATURES)
PEERS, WEIGHTS = "peers.py", "weights.py"  # scripts of several tables
MAPPED = tuple(f"realpairs/rootsift/val/{name}" for name in ("entry_p10", "herz_jesus_p25", "llff_fern"))


@dataclass(frozen=True)
class Step:
    """A result file and what makes it.

    Attributes:
        name: of the file, NAME.json.
        script: in this folder; empty for the one of the step's name.
        words: arguments of the script.
        full: the arguments instead, of the long version; None where it is the same.
        data: folders of the data by the option that takes them, "" for plain arguments; those that are missing are left
            out.
        needs: the option without whose data the step is left out; None if it can do without any.
        minutes: that it takes on idle cores, as it was measured.
        whole: it uses all cores or times what does, so nothing runs beside it.
        timed: its figures are mainly times, so no other such step runs beside it.
    """

    name: str
    script: str = ""
    words: tuple[str, ...] = ()
    full: tuple[str, ...] | None = None
    data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: str | None = None
    minutes: float = 1.0
    whole: bool = False
    timed: bool = False

    @property
    def path(self) -> Path:
        """The script."""
        return HERE / (self.script or f"{self.name}.py")

    def arguments(self, data: Path, quick: bool) -> list[str]:
        """All arguments; scripts of several tables get the name of theirs first."""
        words = [*self.words, *(["--quick"] if quick else [])]
        for option, folders in self.data.items():
            found = [str(data / folder) for folder in folders if (data / folder).exists()]
            words = [*words, option, *found] if option and found else [*found, *words] if not option else words
        return [*([self.name] if self.script else []), *words]

    def lacks(self, data: Path) -> str | None:
        """Why it cannot run, if so."""
        if not self.path.is_file():
            return f"no {self.path.name}"
        if self.needs is not None and not any((data / folder).exists() for folder in self.data[self.needs]):
            return f"no {', '.join(self.data[self.needs])}"
        return None

    def fits(self, running: Collection[Step]) -> bool:
        """Whether it may run beside others."""
        if not running:
            return True
        return not (self.whole or any(each.whole or (self.timed and each.timed) for each in running))


def most_pairs(number: int) -> tuple[str, ...]:
    """At most so many pairs of a scene."""
    return "--max-pairs", str(number)


# `benchmarks/NAME.py` says what each runs. Minutes: of both cores where a step is `whole`, else of one.
STEPS = (
    Step("package", minutes=0.5, timed=True),
    Step("worked_pair", minutes=0.1),
    Step("speed", words=most_pairs(4), full=most_pairs(12), data={"--data": VAL}, minutes=6, whole=True),
    Step("peers", PEERS, words=most_pairs(20), full=("--seeds", "5"), data={"": VAL}, needs="", minutes=14, whole=True),
    Step(
        "tuned",
        PEERS,
        words=(*most_pairs(5), "--tune-pairs", "1"),
        full=("--tune-pairs", "8"),
        data={"": VAL[:1], "--tune": TRAIN[:1]},
        needs="",
        minutes=3,
        whole=True,
    ),
    Step(
        "paper",
        PEERS,
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
    Step("calibration", WEIGHTS, data={"": VAL, "--unrelated": UNRELATED}, needs="", minutes=0.7),
    Step("robustness", WEIGHTS, minutes=1),
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
    Step("reconstruction", minutes=3, timed=True),
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
)


def changed_files() -> list[str]:
    """What differs from the commit and decides figures; published results and texts do not."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", *machine.DECIDING]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def is_made(path: Path, command: str) -> bool:
    """Whether a file is the result of this command, by a commit from which nothing that decides figures has changed."""
    if not path.is_file():
        return False
    made = json.loads(path.read_text()).get("made", {})
    return made.get("command") == command and is_same_code(str(made.get("commit")))


def is_same_code(commit: str) -> bool:
    """Whether a commit differs from the present one at most in published results and texts."""
    command = ["git", "-C", str(ROOT), "diff", "--quiet", commit, "HEAD", "--", *machine.DECIDING]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def make_quick_data(folder: Path) -> None:
    """Synthetic pairs in the layout of the RANSAC Tutorial 2020, for scripts that read real ones."""
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


def run(step: Step, words: Sequence[str], out: Path, log: Path) -> int:
    """Run a script; its output goes to a log. Returns its exit code."""
    command = [sys.executable, str(step.path), *words, "--out", str(out)]
    with log.open("w") as file:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | SINGLE_THREAD, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    return done.returncode


def make(step: Step, data: Path, results: Path, work: Path, quick: bool) -> str:
    """Make the file of a step, unless it is made already; says what became of it."""
    why = step.lacks(data)
    if why is not None:
        return f"left out: {why}"
    words, target = step.arguments(data, quick), results / f"{step.name}.json"
    if not quick and is_made(target, command_of([f"benchmarks/{step.path.name}", *words])):
        return "kept"
    out, log, started = work / target.name, work / f"{step.name}.log", time.monotonic()
    code = run(step, words, out, log)
    if code == LEFT_OUT:
        return f"left out: {log.read_text().splitlines()[-1]}"
    if code != 0:
        return f"FAILED with exit code {code}, see {log.relative_to(ROOT)}"
    for path in (out, out.with_suffix(".md"), *work.glob(f"{step.name}-*.svg")):
        shutil.move(path, results / path.name)
    return f"made in {(time.monotonic() - started) / 60:.1f} min"


def in_order(steps: Sequence[Step]) -> list[Step]:
    """What runs alone first, then times, then the rest; of each the longest first, so that lanes end together."""
    return sorted(steps, key=lambda step: (not step.whole, not step.timed, -step.minutes))


def publish(
    steps: Sequence[Step], data: Path, results: Path, work: Path, quick: bool, jobs: int = 1
) -> Iterator[tuple[str, str]]:
    """Run what is not made yet, several at a time; yields the name of every step and what became of it."""
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
        beside = "alone" if step.whole else "no other times beside it" if step.timed else ""
        print(f"{step.name:18}{step.minutes:5.1f} min  {beside}")
    alone = sum(step.minutes for step in steps if step.whole)
    others = sum(step.minutes for step in steps if not step.whole)
    print(f"{'in all':18}{alone + others / 2:5.1f} min  with two cores")


def main() -> int:
    """Publish everything; fails if a step failed or a table does not fit its file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data")
    parser.add_argument("--quick", action="store_true", help="little and synthetic data, to see that all steps work")
    parser.add_argument("--full", action="store_true", help="the long version: all pairs and seeds, hours")
    parser.add_argument("--only", nargs="+", choices=[step.name for step in STEPS], metavar="STEP", help="some steps")
    parser.add_argument(
        "--jobs", type=int, default=min(count_cores(), 2), help="steps at a time (default: %(default)s)"
    )
    parser.add_argument("--plan", action="store_true", help="only show the steps of the default sizes")
    parser.add_argument("--out", type=Path, default=QUICK, metavar="DIR", help="for --quick (default: %(default)s)")
    arguments = parser.parse_args()
    chosen = [step for step in STEPS if arguments.only is None or step.name in arguments.only]
    if arguments.plan:
        show_plan(chosen)
        return 0
    if arguments.full:
        chosen = [step if step.full is None else replace(step, words=step.full) for step in chosen]
    if arguments.quick:
        data, results, work = arguments.out / "data", arguments.out / "results", arguments.out
        make_quick_data(data)
    else:
        if changed := changed_files():
            parser.error("the tree is not clean:\n" + "\n".join(changed))
        if digest_of_package(Path(caransac.__file__).parent) != digest_of_package(ROOT / "src" / "caransac"):
            parser.error("the installed caransac is not that of the tree: install it")
        data, results, work = (arguments.data or ROOT / "data").resolve(), RESULTS, WORK / str(machine.commit())
    summary, started = [], time.monotonic()
    for name, outcome in publish(chosen, data, results, work, arguments.quick, arguments.jobs):
        summary.append(f"{name:18}{outcome}")
        print(summary[-1], flush=True)
    summary.append(f"{'in all':18}{(time.monotonic() - started) / 60:.1f} min")
    print(summary[-1])
    (work / "summary.txt").write_text("\n".join(summary) + "\n")
    tables = [sys.executable, str(HERE / "tables.py"), *(["--results", str(results)] if arguments.quick else [])]
    done = subprocess.run(tables, cwd=ROOT, check=False)
    return 1 if done.returncode or any("FAILED" in line for line in summary) else 0


if __name__ == "__main__":
    sys.exit(main())

"""All published results from one clean commit: `make publish`; a little of everything in minutes: `make publish-quick`.

    python benchmarks/publish.py --data DIR [--only STEP ...]     results go to benchmarks/results
    python benchmarks/publish.py --quick [--out DIR]              synthetic data; results go to build/publish-quick

DIR has the folders realpairs, homographies and photos; what of them is missing is left out, and the summary says so. A
step whose file has the present code and command is kept, so an interrupted run continues where it was. A step that
fails leaves the file of before. At the end all tables are made from the files.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
from published import LEFT_OUT, RESULTS, command_of

import caransac
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
MAPPED = tuple(f"realpairs/rootsift/val/{name}" for name in ("entry_p10", "herz_jesus_p25", "llff_fern"))


@dataclass(frozen=True)
class Step:
    """A result file and what makes it.

    Attributes:
        name: of the file, NAME.json.
        script: in this folder; empty for the one of the step's name.
        words: arguments of the script.
        data: folders of the data by the option that takes them, "" for plain arguments; those that are missing are left
            out.
        needs: the option without whose data the step is left out; None if it can do without any.
    """

    name: str
    script: str = ""
    words: tuple[str, ...] = ()
    data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: str | None = None

    @property
    def path(self) -> Path:
        """The script."""
        return HERE / (self.script or f"{self.name}.py")

    def arguments(self, data: Path, quick: bool) -> list[str]:
        """The arguments of the script."""
        words = [*self.words, *(["--quick"] if quick else [])]
        for option, folders in self.data.items():
            found = [str(data / folder) for folder in folders if (data / folder).exists()]
            words = [*words, option, *found] if option and found else [*found, *words] if not option else words
        return words

    def lacks(self, data: Path) -> str | None:
        """Why it cannot run, if so."""
        if not self.path.is_file():
            return f"no {self.path.name}"
        if self.needs is not None and not any((data / folder).exists() for folder in self.data[self.needs]):
            return f"no {', '.join(self.data[self.needs])}"
        return None


def _table(name: str, script: str, *words: str, **data: tuple[str, ...]) -> Step:
    """A step of a script that has several tables; the name of the table comes first."""
    given = {"": data.pop("folders", ())} | {f"--{option}": folders for option, folders in data.items()}
    return Step(name, script, words, given, "" if given[""] else None)


STEPS = (
    Step("package"),
    Step("worked_pair"),
    Step("speed", data={"--data": VAL}),
    _table("peers", "peers.py", folders=VAL),
    _table("tuned", "peers.py", folders=VAL[:1], tune=TRAIN[:1]),
    _table("paper", "peers.py", "--max-pairs", "10", folders=VAL, train=TRAIN[:1]),
    Step("focal", words=("--max-pairs", "30"), data={"": VAL}, needs=""),
    Step("focal_scenes", data={"": VAL}, needs=""),
    Step("focal_pooling"),
    Step("lenses", data={"": VAL}, needs=""),
    Step("absolute", data={"": VAL}, needs=""),
    Step("hard_scenes", data={"--val": VAL, "--unrelated": UNRELATED}),
    _table("calibration", "weights.py", folders=VAL, unrelated=UNRELATED),
    _table("robustness", "weights.py"),
    Step("covariance", data={"--val": VAL}),
    Step("homographies", data={"": tuple(f"homographies/{name}/val" for name in FEATURES)}),
    Step("thresholds", data={"": VAL}, needs=""),
    Step("dense"),
    Step("any_scene"),
    Step("photos", data={"--photos": ("photos/drone",)}),
    Step("reconstruction"),
    Step("real_databases", data={"": MAPPED}, needs=""),
    Step("verification"),
    Step("faults"),
    Step("interrupts"),
    Step("ablation", words=("--problem", "E", "F"), data={"": TRAIN}, needs=""),
)


def words_of(step: Step, data: Path, quick: bool) -> list[str]:
    """All arguments: scripts of several tables get the name of theirs first."""
    return [*([step.name] if step.script else []), *step.arguments(data, quick)]


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


def publish(steps: Sequence[Step], data: Path, results: Path, work: Path, quick: bool) -> Iterator[tuple[str, str]]:
    """Run what is not made yet; yields the name of every step and what became of it."""
    work.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    for step in steps:
        why = step.lacks(data)
        if why is not None:
            yield step.name, f"left out: {why}"
            continue
        words, target = words_of(step, data, quick), results / f"{step.name}.json"
        if not quick and is_made(target, command_of([f"benchmarks/{step.path.name}", *words])):
            yield step.name, "kept"
            continue
        out, log, started = work / target.name, work / f"{step.name}.log", time.monotonic()
        code = run(step, words, out, log)
        if code == LEFT_OUT:
            yield step.name, f"left out: {log.read_text().splitlines()[-1]}"
            continue
        if code != 0:
            yield step.name, f"FAILED with exit code {code}, see {log.relative_to(ROOT)}"
            continue
        for path in (out, out.with_suffix(".md"), *work.glob(f"{step.name}-*.svg")):
            shutil.move(path, results / path.name)
        yield step.name, f"made in {(time.monotonic() - started) / 60:.1f} min"


def main() -> int:
    """Publish everything; fails if a step failed or a table does not fit its file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data")
    parser.add_argument("--quick", action="store_true", help="little and synthetic data, to see that all steps work")
    parser.add_argument("--only", nargs="+", choices=[step.name for step in STEPS], metavar="STEP", help="some steps")
    parser.add_argument("--out", type=Path, default=QUICK, metavar="DIR", help="for --quick (default: %(default)s)")
    arguments = parser.parse_args()
    chosen = [step for step in STEPS if arguments.only is None or step.name in arguments.only]
    if arguments.quick:
        data, results, work = arguments.out / "data", arguments.out / "results", arguments.out
        make_quick_data(data)
    else:
        if changed := changed_files():
            parser.error("the tree is not clean:\n" + "\n".join(changed))
        if digest_of_package(Path(caransac.__file__).parent) != digest_of_package(ROOT / "src" / "caransac"):
            parser.error("the installed caransac is not that of the tree: install it")
        data, results, work = (arguments.data or ROOT / "data").resolve(), RESULTS, WORK / str(machine.commit())
    summary = []
    for name, outcome in publish(chosen, data, results, work, arguments.quick):
        summary.append(f"{name:16}{outcome}")
        print(summary[-1], flush=True)
    (work / "summary.txt").write_text("\n".join(summary) + "\n")
    tables = [sys.executable, str(HERE / "tables.py"), *(["--results", str(results)] if arguments.quick else [])]
    done = subprocess.run(tables, cwd=ROOT, check=False)
    return 1 if done.returncode or any("FAILED" in line for line in summary) else 0


if __name__ == "__main__":
    sys.exit(main())

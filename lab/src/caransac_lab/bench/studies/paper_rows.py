"""The paper's own method on our pairs: rows to run, and comparison of their order with the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from caransac._support.batch import count_cores
from caransac_lab.bench.filters import PAPER_FILTER
from caransac_lab.bench.paper import PRESET, TABLES
from caransac_lab.bench.publication import data_name, table
from caransac_lab.bench.studies import ablation
from caransac_lab.datasets import read_ransac_tutorial

Row = dict[str, Any]
RunBench = Callable[[Path, Sequence[str]], list[Row]]

METHODS = (PRESET, f"{PRESET} (E)", "CA-RANSAC", "LM-LO", "LM-LO-U", "LM-LO-U 10k", "PoseLib")
ABLATIONS = tuple(f"{PRESET} -{part}" for part in "RSC")
ROUNDS = tuple(f"{PRESET} {rounds}x256" for rounds in (1, 2, 8))  # four rounds are the preset itself
SIDE_INFORMATION = f"{PRESET} with filter features"
FILTERS = (*(f"{PAPER_FILTER} + {name}" for name in ("eight-point", "LM-LO", PRESET)), SIDE_INFORMATION)
FIRST_SCENES = ("entry_p10", "herz_jesus_p25", "llff_fern", "llff_flower")
# Data on which the weights of the paper's authors were tested.
FIRST, FIRST_PAIRS, FIRST_SEEDS = "first-scenes", "40", "2"
AUTHORS = "about 89.5 / 62.6"  # the authors' figures on these data
LEAST_DIFFERENCE = 0.3  # minimum difference of figures of the paper that have an order
SEEDS, TIMING_PAIRS, DIFFERENCE_PAIRS, DIFFERENCE_SEEDS = "5", "3", 8, 2

# Orders in the paper: table, higher row, lower row, and our data for checking it.
ROOTSIFT, ORB, E, F = "rootsift/val", "orb8k/val", "E", "F"
ORDERS = (
    ("table-1", PRESET, f"{PRESET} -S", ROOTSIFT, E),
    ("table-1", f"{PRESET} -S", f"{PRESET} -C", ROOTSIFT, E),
    ("table-1", PRESET, f"{PRESET} -R", ROOTSIFT, E),
    ("table-7", f"{PRESET} 2x256", f"{PRESET} 1x256", ROOTSIFT, E),
    ("table-7", f"{PRESET} 4x256", f"{PRESET} 2x256", ROOTSIFT, E),
    ("table-7", f"{PRESET} 8x256", f"{PRESET} 4x256", ROOTSIFT, E),
    ("table-7", "LM-LO", "LM-LO-U", ROOTSIFT, E),
    ("table-7", "LM-LO-U 10k", "LM-LO-U", ROOTSIFT, E),
    ("table-8-rootsift", PRESET, "LM-LO", ROOTSIFT, E),
    ("table-8-orb8k", PRESET, "LM-LO", ORB, E),
    ("table-6", PRESET, f"{PRESET} (E)", ROOTSIFT, F),
    ("table-6", PRESET, "LM-LO", ROOTSIFT, F),
    ("table-4", "CLNet + LM-LO", "CLNet + eight-point", ROOTSIFT, E),
    ("table-4", f"{PRESET} tuned", "CLNet + LM-LO", ROOTSIFT, E),
)
OURS = {f"{PRESET} 4x256": PRESET, f"{PRESET} tuned": SIDE_INFORMATION}  # our names of the paper's rows, if they differ


def run_rows(bench: RunBench, work: Path, folders: Sequence[str], max_pairs: Sequence[str], quick: bool) -> list[Row]:
    """Run all rows: the methods on all data, the others on the first data set."""
    rules = [*max_pairs, "--seeds", "2" if quick else SEEDS, "--timing-pairs", TIMING_PAIRS]
    more = ABLATIONS[:1] if quick else (*ABLATIONS, *ROUNDS, *FILTERS)
    methods = METHODS[:4] if quick else METHODS
    rows = bench(work / "methods", [*folders, "--problem", "E", "F", "--methods", *methods, *rules])
    rows += bench(work / "rows", [folders[0], "--methods", *more, *rules])
    if all((Path(folders[0]) / scene).is_dir() for scene in FIRST_SCENES):
        few = work / FIRST_PAIRS / FIRST
        few.mkdir(parents=True, exist_ok=True)
        for scene in FIRST_SCENES:
            if not (few / scene).exists():
                (few / scene).symlink_to((Path(folders[0]) / scene).resolve())
        rules = ["--max-pairs", FIRST_PAIRS, "--seeds", FIRST_SEEDS, "--timing-pairs", "0"]
        rows += bench(work / FIRST, [str(few), "--methods", PRESET, "CA-RANSAC", "LM-LO", *rules])
    return sorted(rows, key=lambda row: (row["problem"], row["dataset"]))


def run_differences(folders: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure the gain of each difference between the paper and the default on training scenes, by `ablation.py`."""
    count, seeds = (1, 1) if quick else (DIFFERENCE_PAIRS, DIFFERENCE_SEEDS)
    pairs = [pair for folder in folders for pair in read_ransac_tutorial(folder, max_pairs=count)]
    chosen = {name: changed for name, changed in ablation.STAGES.items() if name in difference_names()}
    with ProcessPoolExecutor(count_cores()) as pool:
        rows = {name: ablation.run_row(pool, pairs, "E", changed, seeds)[0] for name, changed in chosen.items()}
    return {"data": [data_name(Path(each)) for each in folders], "pairs": len(pairs), "seeds": seeds, "rows": rows}


def difference_names() -> list[str]:
    """Return the rows of `ablation.py` that replace one part by the paper's."""
    return ["default", "local_models = 4", *(name for name in ablation.STAGES if name.startswith("paper: "))]


def differences_table(found: dict[str, Any]) -> str:
    """Format the gain of each difference: the first row has figures, the others have differences to it."""
    lines = []
    for name in found["rows"]:
        label = {"default": "nothing: the default", "local_models = 4": "4 local refinements"}.get(name, name)
        lines.append([label.removeprefix("paper: "), *ablation.row_cells(name, found["rows"])[1:]])
    size = f"{found['pairs']} pairs of {', '.join(found['data'])}, {found['seeds']} seeds"
    header = ["done as the paper does", "AUC@5", "AUC@1", "answers differ between seeds, %", "time"]
    return f"{size}:\n\n{table(header, lines)}"


def find(rows: Sequence[Row], data: str, problem: str, method: str) -> Row:
    """Return a row. Raise KeyError if there is none."""
    for row in rows:
        if (row["dataset"], row["problem"], row["method"]) == (data, problem, method):
            return row
    raise KeyError(f"{method}, {problem}, {data}")


def orders_table(rows: Sequence[Row]) -> str:
    """Format which orders of the paper's tables agree with our rows, and which do not.

    Figures that differ by less than their deviations over seeds have no order.
    """
    lines = []
    for name, upper, lower, data, problem in ORDERS:
        ours = [OURS.get(each, each).replace("CLNet", PAPER_FILTER) for each in (upper, lower)]
        try:
            above, below = (find(rows, data, problem, each) for each in ours)
        except KeyError:  # not run on these data
            continue
        paper = [round(a - b, 1) for a, b in zip(*(TABLES[name].rows[each] for each in (upper, lower)), strict=True)]
        cells, verdicts = [], []
        for published, figure in zip(paper, ("AUC5", "AUC1"), strict=False):
            (mean1, deviation1), (mean2, deviation2) = above["figures"][figure], below["figures"][figure]
            cells.append(f"{mean1 - mean2:+.1f}")
            verdicts.append(verdict(published, mean1 - mean2, math.hypot(deviation1, deviation2)))
        said = verdicts[0] if len(set(verdicts)) == 1 else f"{verdicts[0]}; in AUC@1 {verdicts[1]}"
        of = f"{name.replace('table-', 'table ')}, {problem}"
        lines.append([of, f"{ours[0]} - {ours[1]}", f"{paper[0]:+.1f} / {paper[1]:+.1f}", " / ".join(cells), said])
    return table(["of the paper", "difference", "paper, AUC@5 / AUC@1", "here", "order"], lines)


def verdict(paper: float, ours: float, noise: float) -> str:
    """Return whether a difference has the same sign as the paper's, in words."""
    if abs(paper) < LEAST_DIFFERENCE:
        return "none in the paper"
    if abs(ours) <= noise:
        return "too close to say"
    return "the same" if ours * paper > 0 else "**differs**"

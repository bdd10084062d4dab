"""Fit the confidence of the shipped weights anew, after a change of the estimator, and put it into them.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    .venv/bin/python benchmarks/fit_confidence.py --data DIR ... --unrelated DIR ... [--runs 4000] [--only NAME]

As ``caransac train --start NAME --steps 0`` for each of the weights, which then take the place of those in
src/caransac/learned/weights, with the figures of the fit in their cards. Nothing else of them changes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from caransac._support.batch import count_cores
from caransac._support.files import replacing
from caransac.learned.weights_file import read_weights
from caransac.training.recipe import Recipe
from caransac.training.trainer import train

WEIGHTS = Path("src/caransac/learned/weights")
# What the weights were trained for, and the filter that they read.
FITTED = {"default": ("state", ""), "with-filter": ("state", "filter"), "absolute": ("absolute", "")}


def fit(name: str, data: tuple[str, ...], unrelated: tuple[str, ...], runs: int, workers: int) -> None:
    """Fit the confidence of one of the shipped weights."""
    width = len(read_weights(name, "name")["init.0.bias"])
    task, with_filter = FITTED[name]
    recipe = Recipe(
        task=task, data=data, unrelated=unrelated, start=name, with_filter=with_filter, width=width, val_pairs=4
    )
    with tempfile.TemporaryDirectory() as folder:
        made = train(recipe, Path(folder), steps=0, workers=workers, evidence_runs=runs)
        fitted = json.loads(made.with_suffix(".json").read_text())
        path = WEIGHTS / f"{name}.json"
        card = json.loads(path.read_text()) | {key: fitted[key] for key in ("confidence", "parameters")}
        shutil.copyfile(made, WEIGHTS / f"{name}.npz")
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    figures = {key: value for key, value in fitted["confidence"].items() if key != "evidence"}
    print(name, json.dumps(figures, indent=1), flush=True)


def main() -> None:
    """Fit all of them, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", required=True, metavar="DIR", help="scenes to fit on")
    parser.add_argument("--unrelated", nargs="+", default=[], metavar="DIR", help="pairs of unrelated images")
    parser.add_argument("--runs", type=int, default=4000, help="of the estimator, for each problem (default: 4000)")
    parser.add_argument("--workers", type=int, default=count_cores())
    parser.add_argument("--only", choices=FITTED, help="one of the weights")
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else FITTED:
        fit(name, tuple(arguments.data), tuple(arguments.unrelated), arguments.runs, arguments.workers)


if __name__ == "__main__":
    main()

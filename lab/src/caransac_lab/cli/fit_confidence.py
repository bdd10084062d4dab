"""caransac-lab fit-confidence: refit the confidence of the shipped weights after a change of the estimator."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from caransac._support.batch import count_cores
from caransac._support.files import replacing
from caransac.learned.weights_file import read_weights, weights_path
from caransac_lab.networks.weights import find_weights
from caransac_lab.training.recipe import Recipe, TaskName

# Training task of the weights, and the filter that they read.
FITTED: dict[str, tuple[TaskName, str]] = {
    "default": ("state", ""),
    "with-filter": ("state", "filter"),
    "absolute": ("absolute", ""),
}
SYNTHETIC = 0.15  # share of synthetic pairs


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fit-confidence",
        help="fit the confidence of the shipped weights after a change of the estimator",
        description="Fit the confidence of the shipped weights as 'train --start NAME --steps 0' does, and write it "
        "into the weights and their model cards. Nothing else changes. Run it in a clone. Needs the extra 'train'.",
    )
    parser.add_argument("--data", nargs="+", required=True, metavar="DIR", help="scenes to fit on")
    parser.add_argument("--unrelated", nargs="+", default=[], metavar="DIR", help="pairs of unrelated images")
    parser.add_argument("--runs", type=int, default=4000, help="estimator runs per problem (default: 4000)")
    parser.add_argument("--workers", type=int, default=count_cores(), help="number of processes (default: all cores)")
    parser.add_argument("--only", choices=FITTED, help="fit only these weights (default: all)")
    parser.set_defaults(run=fit_all)


def fit(name: str, data: tuple[str, ...], unrelated: tuple[str, ...], runs: int, workers: int) -> None:
    """Fit the confidence of one of the shipped weights."""
    from caransac_lab.training.trainer import train

    weights = weights_path(find_weights(name))
    width = len(read_weights(weights, "name")["init.0.bias"])
    task, with_filter = FITTED[name]
    recipe = Recipe(
        task=task,
        data=data,
        unrelated=unrelated,
        synthetic_share=SYNTHETIC,
        start=name,
        with_filter=with_filter,
        width=width,
        val_pairs=4,
    )
    with tempfile.TemporaryDirectory() as folder:
        made = train(recipe, Path(folder), steps=0, workers=workers, evidence_runs=runs)
        fitted = json.loads(made.with_suffix(".json").read_text())
        path = weights.with_suffix(".json")
        card = json.loads(path.read_text()) | {key: fitted[key] for key in ("confidence", "parameters")}
        shutil.copyfile(made, weights)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    figures = {key: value for key, value in fitted["confidence"].items() if key != "evidence"}
    print(name, json.dumps(figures, indent=1), flush=True)


def fit_all(arguments: argparse.Namespace) -> int:
    """Fit all shipped weights, or one of them."""
    for name in [arguments.only] if arguments.only else FITTED:
        fit(name, tuple(arguments.data), tuple(arguments.unrelated), arguments.runs, arguments.workers)
    return 0

"""caransac-lab train: train weights on your own pairs or on synthetic ones."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from caransac._support.batch import count_cores
from caransac._support.progress import Progress
from caransac.cli.quiet import add_quiet
from caransac_lab.training.recipe import Recipe


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "train",
        help="train weights on your own pairs, or on synthetic ones",
        description="Train the state network of CA-RANSAC, or another network, and write weights.npz, its model card "
        "weights.json, log.csv and curves.png to a folder. Without --data it trains only on synthetic pairs. A "
        "checkpoint is written every two minutes; --resume continues an interrupted run. Needs the extra 'train'.",
    )
    add_quiet(parser)
    task = parser.add_mutually_exclusive_group()
    task.add_argument(
        "--paper",
        action="store_const",
        dest="task",
        const="paper",
        default="state",
        help="train the network of the paper for caransac.Options.paper, as described in the paper",
    )
    task.add_argument(
        "--filter",
        action="store_const",
        dest="task",
        const="filter",
        default="state",
        help="train the match filter instead",
    )
    task.add_argument(
        "--sample-quality",
        action="store_const",
        dest="task",
        const="sample-quality",
        help="train the network that ranks minimal samples instead",
    )
    task.add_argument(
        "--absolute",
        action="store_const",
        dest="task",
        const="absolute",
        help="train the state network for absolute poses, on 2D-3D matches made from the pairs of the scenes",
    )
    _add_run(parser)
    _add_data(parser)
    _add_network(parser)
    parser.set_defaults(run=train, how_to_continue="the same command with --resume continues")


def _add_run(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("the run")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the run")
    run.add_argument("--resume", action="store_true", help="continue the run in --out, if there is one")
    _add_number(
        run, "steps", 3000, "total number of optimiser steps; with --start and 0 steps, only the confidence is fitted"
    )
    _add_number(run, "workers", count_cores(), "number of processes; it does not change the result")
    _add_number(run, "evidence-runs", 1500, "number of estimates per problem for fitting the confidence")


def _add_data(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group(
        "the data", "DIR has scenes in the layout of the RANSAC Tutorial 2020. Options with a DIR may be repeated."
    )
    for name, text in (
        ("data", "scenes to train on"),
        ("val", "scenes to validate on (default: every twentieth pair of --data)"),
        ("unrelated", "pairs of unrelated images, for the confidence"),
    ):
        data.add_argument(f"--{name}", action="append", default=[], metavar="DIR", help=text)
    data.add_argument(
        "--self-supervised", action="store_true", help="label matches by the final model instead of the ground truth"
    )
    _add_field(data, "synthetic_share", "share of synthetic pairs, 0 to 1")
    _add_field(data, "fundamental_share", "share of pairs for which F is estimated instead of a pose, 0 to 1")


def _add_network(parser: argparse.ArgumentParser) -> None:
    network = parser.add_argument_group("the network and its training")
    network.add_argument(
        "--start",
        default="",
        metavar="WEIGHTS",
        help="weights to start from: 'default', or a path (default: random ones)",
    )
    network.add_argument(
        "--with-filter",
        nargs="?",
        default="",
        const="filter",
        metavar="WEIGHTS",
        help="append the output of a match filter to the input of the state network (default: no filter)",
    )
    _add_field(network, "width", "width of the network, a multiple of 4 up to 128")
    _add_field(network, "batch", "pairs per step")
    _add_field(network, "epoch", "steps between two validations")
    _add_field(network, "val_pairs", "maximum number of pairs to validate on")
    _add_field(network, "learning_rate", "learning rate of Adam; halved when validation stops improving")
    _add_field(network, "patience", "epochs without improvement before the rate is halved")
    _add_field(network, "seed", "seed of all random numbers")
    _add_field(network, "filter_features", "with --filter: number of output features per match, up to 128")
    _add_field(
        network,
        "lifted",
        "with --paper: number of feature columns, counted from the last, that are encoded like the scores",
    )
    _add_field(
        network, "max_matches", "with --paper: maximum number of matches per training pair, chosen at random; 0 for all"
    )
    network.add_argument(
        "--prior-loss",
        action="store_true",
        default=argparse.SUPPRESS,
        help="with --paper: include the prior probabilities in the loss",
    )
    network.add_argument(
        "--no-update",
        action="store_false",
        dest="state_update",
        default=argparse.SUPPRESS,
        help="train without updates of the state, the ablation -C",
    )


def _add_number(group: argparse._ArgumentGroup, name: str, default: float, text: str) -> None:
    """Add a numeric option with the type of its default."""
    group.add_argument(
        f"--{name}", type=type(default), default=default, metavar="N", help=f"{text} (default: {default})"
    )


def _add_field(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    """Add an option for a number of the recipe. By default, the recipe of the task decides."""
    default, paper = (getattr(recipe, name) for recipe in (Recipe(), Recipe.paper()))
    shown = f"{default}" if default == paper else f"{default}, with --paper {paper}"
    group.add_argument(
        f"--{name.replace('_', '-')}",
        type=type(default),
        default=argparse.SUPPRESS,
        metavar="N",
        help=f"{text} (default: {shown})",
    )


def train(arguments: argparse.Namespace) -> int:
    """Train and show the progress."""
    try:
        from caransac_lab.training import trainer, worker
    except ImportError as error:
        raise ImportError(f"training needs {error.name}: pip install 'caransac-lab[train]'") from error

    recipe = read_recipe(arguments)
    with Progress(quiet=arguments.quiet) as progress:

        def show(stage: str, done: int, total: int, latest: Mapping[str, float]) -> None:
            progress.show(stage, done, total, figures=format_figures(latest))

        weights = trainer.train(
            recipe,
            arguments.out,
            steps=arguments.steps,
            workers=arguments.workers,
            resume=arguments.resume,
            evidence_runs=arguments.evidence_runs,
            progress=show,
        )
    print(f"Weights: {weights}")
    print(f"Use them: {worker.TASKS[recipe.task].usage.format(path=str(weights))}")
    return 0


def read_recipe(arguments: argparse.Namespace) -> Recipe:
    """Return the recipe for the arguments, with the defaults of its task."""
    given = {each.name: getattr(arguments, each.name) for each in fields(Recipe) if hasattr(arguments, each.name)}
    given |= {name: tuple(folders) for name, folders in given.items() if isinstance(folders, list)}
    return Recipe.paper(**given) if arguments.task == "paper" else Recipe(**given)


def format_figures(latest: Mapping[str, float]) -> str:
    """Format the latest figures of training and validation: ``train loss 0.3  val loss 0.4 auc5 61.2``."""
    parts: dict[str, list[str]] = defaultdict(list)
    for name, value in latest.items():
        part, _, figure = name.partition("_")
        parts[part].append(f"{figure} {value:.{3 if abs(value) < 9.9995 else 1}f}")
    return "  ".join(" ".join([part, *figures]) for part, figures in parts.items())

"""caransac-lab bench: compare robust estimators."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from caransac._support import interrupts
from caransac._support.batch import count_cores
from caransac._support.progress import Progress
from caransac.cli.quiet import add_quiet, note
from caransac.io.images import FeatureKind
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import installed_version
from caransac_lab.bench.filters import saved_filter
from caransac_lab.bench.journal import Journal, Key
from caransac_lab.bench.paper import PaperTable
from caransac_lab.bench.plan import GROUPS, Plan
from caransac_lab.bench.protocol import Outcome
from caransac_lab.datasets import match_pair_list, split_score_kind

QUICK = Plan(sources=("synthetic:40",), problems=("E",), timing_pairs=10)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "bench",
        help="compare robust estimators on your own, public or synthetic pairs",
        description="Compare robust estimators on the same matches under the same rules, and write "
        "results.json, table.md, table.csv and plots to a folder. Every outcome is stored immediately. To continue an "
        "interrupted run, give the same command again. Needs the extra 'bench'.",
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="DIR",
        help="data sets: folders of scenes (RANSAC Tutorial, or npz files), pair lists .txt, posebench .h5, or "
        "synthetic:N; DIR=confidence has confidences instead of ratios, DIR=none ignores the scores",
    )
    parser.add_argument(
        "--list", action="store_true", help="list all methods, and the requirements of the missing ones"
    )
    parser.add_argument("--quick", action="store_true", help="run on a few synthetic pairs, in less than two minutes")
    _add_methods(parser)
    add_rules(parser)
    parser.set_defaults(run=bench, how_to_continue="the same command continues")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options for data, output and rules, which the paper's tables share."""
    parser.add_argument(
        "--data", action="append", default=[], metavar="DIR", help="a further data set; may be repeated"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bench"), metavar="DIR", help="folder of the results (default: %(default)s)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=count_cores(),
        metavar="N",
        help="number of processes for measuring accuracy; it does not change the figures (default: %(default)s)",
    )
    parser.add_argument("--no-plots", action="store_true", help="write no plots")
    add_quiet(parser)
    _add_images(parser)
    _add_amount(parser)


def _add_methods(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is compared")
    what.add_argument(
        "--problem",
        nargs="+",
        choices=["E", "F"],
        default=["E"],
        help="poses, fundamental matrices or both; 'caransac-lab study absolute' is for absolute poses (default: E)",
    )
    what.add_argument(
        "--methods",
        nargs="+",
        default=["default"],
        metavar="NAME",
        help=f"methods, or groups of them: {', '.join(GROUPS)} (default: default)",
    )


def _add_images(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("the matches")
    what.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="NAME=FILE[:THRESHOLD]",
        help="add rows in which saved weights (npz, an array for every scene/pair) filter the matches; may be repeated",
    )
    what.add_argument(
        "--weights",
        default="",
        metavar="FILE",
        help="weights trained on data like these (caransac-lab train --paper), for the row 'CA-RANSAC paper tuned'",
    )
    what.add_argument(
        "--images", type=Path, metavar="DIR", help="match the images in DIR, for pair lists without matches"
    )
    what.add_argument(
        "--features",
        choices=get_args(FeatureKind),
        default="rootsift",
        help="kind of keypoints to match with --images (default: %(default)s)",
    )
    what.add_argument("--max-pairs", type=int, metavar="N", help="maximum number of pairs per scene (default: all)")


def _add_amount(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("the rules")
    amount = rules.add_mutually_exclusive_group()
    amount.add_argument(
        "--iterations", type=int, default=1024, metavar="N", help="hypotheses per pair (default: %(default)s)"
    )
    amount.add_argument("--adaptive", action="store_true", help="let each method stop by its own rule")
    amount.add_argument(
        "--budget-ms",
        type=float,
        metavar="MS",
        help="give each method this time per pair instead of a number of hypotheses",
    )
    rules.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="K",
        help="number of runs per pair, each with another seed (default: %(default)s)",
    )
    rules.add_argument(
        "--max-ratio",
        type=float,
        default=0.85,
        metavar="R",
        help="ratio test of the classical methods; 2 keeps all matches (default: %(default)s)",
    )
    rules.add_argument(
        "--tune",
        metavar="DIR",
        help="tune the threshold of each method on this data set (default: each method's own threshold)",
    )
    rules.add_argument(
        "--tune-pairs",
        type=int,
        default=20,
        metavar="N",
        help="maximum number of pairs per scene for --tune (default: %(default)s)",
    )
    rules.add_argument(
        "--timing-pairs",
        type=int,
        default=20,
        metavar="N",
        help="number of pairs on which time is measured; 0 for none (default: %(default)s)",
    )


def bench(arguments: argparse.Namespace) -> int:
    """Run the benchmark, or list the known methods."""
    if arguments.list:
        list_methods()
        return 0
    run_plan(prepare(arguments), arguments.out, arguments, None)
    return 0


def prepare(arguments: argparse.Namespace) -> Plan:
    """Return the plan for the arguments, after its data are found and matched."""
    plan = read_plan(arguments)
    check_sources([*plan.sources, *([] if plan.tune is None else [plan.tune])])
    if arguments.images is not None:
        match_lists([Path(source) for source in plan.sources if source.endswith(".txt")], arguments)
    return plan


def read_plan(arguments: argparse.Namespace) -> Plan:
    """Return the plan for the arguments."""
    sources = (*arguments.sources, *arguments.data)
    plan = Plan(
        sources=sources or (QUICK.sources if arguments.quick else ()),
        problems=tuple(arguments.problem),
        methods=tuple(arguments.methods),
        iterations=None if arguments.adaptive else arguments.iterations,
        budget_ms=arguments.budget_ms,
        seeds=arguments.seeds,
        max_ratio=arguments.max_ratio,
        weights=str(Path(arguments.weights).resolve()) if arguments.weights else "",
        filters=tuple(saved_filter(text) for text in arguments.filter),
        max_pairs=arguments.max_pairs,
        timing_pairs=arguments.timing_pairs,
        tune=arguments.tune,
        tune_pairs=arguments.tune_pairs,
    )
    return replace(plan, timing_pairs=min(plan.timing_pairs, QUICK.timing_pairs)) if arguments.quick else plan


def check_sources(sources: Sequence[str]) -> None:
    """Raise for the first missing data set, before imports that may fail as well."""
    for source in sources:
        if source.partition(":")[0] != "synthetic" and not split_score_kind(Path(source))[0].exists():
            raise FileNotFoundError(
                f"no such file or folder: {source}; want a folder of scenes, a pair list .txt, a posebench .h5 or "
                "synthetic:N"
            )


def match_lists(lists: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Match the images of pair lists without matches, and show the progress."""
    if not arguments.images.is_dir():
        raise ValueError(f"--images: no such folder: {arguments.images}")
    with Progress(quiet=arguments.quiet) as progress:
        for path in lists:
            show = partial(_show_and_check, progress, f"match {path.stem}")
            match_pair_list(path, arguments.images, features=arguments.features, progress=show)


def _show_and_check(progress: Progress, stage: str, done: int, total: int) -> None:
    """Show the progress of a stage, and stop between two pairs if requested."""
    progress.show(stage, done, total, unit="pairs")
    interrupts.check()


class ShownRuns(Progress):
    """An observer of a benchmark that shows its progress."""

    def begin_stage(self, stage: str, total: int) -> None:
        """Begin a stage of `total` runs."""
        self._runs = stage, 0, total
        self.show(*self._runs, unit="runs")

    def add_outcome(self, key: Key, outcome: Outcome) -> None:  # noqa: ARG002  # only their number is shown
        """Count a finished run."""
        stage, done, total = self._runs
        self._runs = stage, done + 1, total
        self.show(*self._runs, unit="runs")


def run_plan(plan: Plan, out: Path, arguments: argparse.Namespace, paper: PaperTable | None) -> None:
    """Run a plan, write the results, and print the table. Nothing else goes to stdout."""
    try:
        import matplotlib  # noqa: F401  # plots come last; that they will be missing shows now

        from caransac_lab.bench import machine, publication
        from caransac_lab.bench.benchmark import Benchmark
    except ImportError as error:
        raise needs_extra(error) from error

    if arguments.workers < 1:
        raise ValueError(f"--workers must be at least 1, not {arguments.workers}")
    about = machine.describe()
    header = {
        "versions": machine.versions(e for e in ESTIMATORS.values() if not e.missing),
        "commit": about["commit"],
        "instruction set": about["instruction_set"],
    }
    shown = ShownRuns(quiet=arguments.quiet)
    with Journal(out / "journal.jsonl", header) as journal, shown:
        benchmark = Benchmark(plan, journal, shown, arguments.workers)
        for name, why in benchmark.missing.items():
            note(arguments, f"missing: {name}: {why}")
        rows = benchmark.run()
    results = publication.publish_run(
        out,
        plan,
        rows,
        benchmark.missing,
        command=shlex.join(["caransac-lab", *sys.argv[1:]]),
        paper=paper,
        draw=not arguments.no_plots,
    )
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(publication.format_markdown(results, paper, width), end="")
    note(arguments, f"Results: {out.resolve()}")


def needs_extra(error: ImportError) -> ImportError:
    """Return the error about a missing package of the extra."""
    return ImportError(f"the benchmark needs {error.name}: pip install 'caransac-lab[bench]'")


def list_methods() -> None:
    """Print all methods with their settings, and what the missing ones need."""
    width = max(map(len, ESTIMATORS)) + 1
    for estimator in ESTIMATORS.values():
        state = estimator.missing or f"{estimator.package} {installed_version(estimator.module)}"
        print(f"{estimator.name:{width}}{'/'.join(estimator.problems):5}{estimator.about}; {state}")
    print()
    for name, members in GROUPS.items():
        print(f"{name:{width}}{', '.join(members)}")

"""caransac-lab publish: produce all published results and the tables of the documents."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import caransac
from caransac._support.batch import count_cores
from caransac.verification.build_identity import digest_of_package
from caransac_lab.bench import machine, steps
from caransac_lab.bench.document_tables import write_tables
from caransac_lab.bench.publication import RESULTS
from caransac_lab.bench.steps import QUICK, STEPS


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "publish",
        help="make all published results from a clean commit, and the tables of the documents",
        description=steps.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with realpairs, homographies, photos, images and projects"
    )
    parser.add_argument("--quick", action="store_true", help="run all steps on little synthetic data, as a test")
    parser.add_argument("--full", action="store_true", help="use all pairs and seeds; takes hours")
    parser.add_argument(
        "--only", nargs="+", choices=[step.name for step in STEPS], metavar="STEP", help="run only these steps"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=min(count_cores(), 2),
        help="number of steps that run at the same time (default: %(default)s)",
    )
    parser.add_argument("--plan", action="store_true", help="only print the steps and their durations")
    parser.add_argument("--tables", action="store_true", help="only write the tables, from the existing results")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table differs from its file")
    parser.add_argument(
        "--out", type=Path, default=QUICK, metavar="DIR", help="folder of the results of --quick (default: %(default)s)"
    )
    parser.set_defaults(run=publish)


def publish(arguments: argparse.Namespace) -> int:
    """Publish everything. Fail if a step fails."""
    if arguments.tables or arguments.check:
        return show_tables(RESULTS, check=arguments.check)
    chosen = [step for step in STEPS if arguments.only is None or step.name in arguments.only]
    if arguments.plan:
        steps.show_plan(chosen)
        return 0
    if arguments.full:
        chosen = [step if step.full is None else replace(step, words=step.full) for step in chosen]
    if arguments.quick:
        data, results, work = arguments.out / "data", arguments.out / "results", arguments.out
        steps.make_quick_data(data)
    else:
        if arguments.data is not None and not (arguments.data / "realpairs").is_dir():
            raise ValueError(f"--data: no folder realpairs in {arguments.data}")
        if changed := steps.changed_files():
            raise ValueError("the tree is not clean: " + ", ".join(changed))
        if digest_of_package(Path(caransac.__file__).parent) != digest_of_package(machine.CLONE / "src" / "caransac"):
            raise ValueError("the installed caransac is not that of the tree: install it")
        data, results = (arguments.data or machine.CLONE / "data").resolve(), RESULTS
        work = steps.WORK / str(machine.commit())
    summary, started = [], time.monotonic()
    for name, outcome in steps.publish(chosen, data, results, work, arguments.quick, arguments.jobs):
        summary.append(f"{name:18}{outcome}")
        print(summary[-1], flush=True)
    summary.append(f"{'in all':18}{(time.monotonic() - started) / 60:.1f} min")
    print(summary[-1])
    (work / "summary.txt").write_text("\n".join(summary) + "\n")
    show_tables(results)
    return 1 if any("FAILED" in line for line in summary) else 0


def show_tables(results: Path, *, check: bool = False) -> int:
    """Write or check all tables, and name those that differ."""
    different = write_tables(results, check=check)
    for path in different:
        print(f"{'differs from its file' if check else 'written'}: {path}")
    return 1 if check and different else 0

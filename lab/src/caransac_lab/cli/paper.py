"""caransac-lab paper: reproduce tables and figures of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from caransac._support.files import make_folder
from caransac.cli.quiet import note
from caransac_lab.bench.paper import FIGURES, TABLES
from caransac_lab.bench.plan import Plan
from caransac_lab.cli.bench import add_rules, needs_extra, prepare, run_plan

FIGURE_PAIRS = 12  # number of pairs for a figure


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "paper",
        help="make tables and figures of the paper",
        description="Make tables and figures of the paper (docs/paper.md), each in its own folder. If the data are "
        "those of the paper, the paper's figures are beside ours. Needs the extra 'bench'.",
    )
    known = ", ".join((*TABLES, *FIGURES))
    parser.add_argument("tables", nargs="+", metavar="TABLE", help=f"tables and figures: {known}, or all")
    add_rules(parser)
    parser.set_defaults(
        run=paper,
        how_to_continue="the same command continues",
        sources=[],
        problem=["E"],
        methods=["default"],
        quick=False,
    )


def paper(arguments: argparse.Namespace) -> int:
    """Create the requested tables and figures."""
    asked = expand_paper(arguments.tables)
    plan = prepare(arguments)
    for name in asked:
        if name in TABLES:
            table = TABLES[name]
            rows = replace(plan, methods=tuple(table.rows), problems=(table.problem,))
            run_plan(rows, arguments.out / name, arguments, table)
        else:
            draw_figure(name, plan, arguments)
    return 0


def expand_paper(names: Sequence[str]) -> list[str]:
    """Return the requested tables and figures by name; "all" stands for all of them."""
    known = (*TABLES, *FIGURES)
    for name in names:
        if name not in (*known, "all"):
            raise ValueError(f"a table or figure of the paper must be one of {', '.join(known)} or all, not {name!r}")
    return list(dict.fromkeys(each for name in names for each in (known if name == "all" else (name,))))


def draw_figure(name: str, plan: Plan, arguments: argparse.Namespace) -> None:
    """Draw a figure of the paper from pairs spread over each data set."""
    try:
        from caransac_lab.bench import paper_figures
        from caransac_lab.bench.benchmark import take_evenly
        from caransac_lab.bench.plots import save
        from caransac_lab.datasets import open_dataset
    except ImportError as error:
        raise needs_extra(error) from error

    for number, source in enumerate(plan.sources):
        few = take_evenly(open_dataset(source, plan.max_pairs), FIGURE_PAIRS)
        pairs = paper_figures.known_pairs(list(few.read()))
        if not pairs:
            raise ValueError(f"no pairs with a true pose in {source}")
        make_folder(arguments.out)
        path = arguments.out / f"{name}-{number}.png"
        save(paper_figures.DRAW[name](pairs), path)
        note(arguments, f"Figure: {path.resolve()}")

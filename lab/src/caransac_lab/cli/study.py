"""caransac-lab study: produce one published result."""

from __future__ import annotations

import argparse
import sys

from caransac_lab.bench import publication, studies
from caransac_lab.bench.steps import STEPS

NAMES = tuple(step.name for step in STEPS)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command. The options of a study are added when it is named."""
    parser = commands.add_parser(
        "study",
        help="measure one published result",
        description=f"Measure one published result, and print and write its tables: {', '.join(NAMES)}. "
        "'caransac-lab study NAME --help' describes it. Needs the extra 'bench', and some the extra 'train'.",
    )
    parser.add_argument("study", metavar="NAME", help="name of the study")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="options of the study")
    parser.set_defaults(run=lambda arguments: run_study(parser, arguments.study, arguments.words))


def run_study(parser: argparse.ArgumentParser, name: str, words: list[str]) -> int:
    """Read the options of a study, run it, and publish its result."""
    if name not in NAMES:
        parser.error(f"there is no study {name!r}; there are {', '.join(NAMES)}")
    try:
        study = studies.load_study(name)
    except ImportError as error:
        raise ImportError(f"the study needs {error.name}: pip install 'caransac-lab[bench,train]'") from error
    own = argparse.ArgumentParser(
        prog=f"caransac-lab study {name}",
        description=study.__doc__,
        epilog="Published times are those of one thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    publication.add_common(own, name)
    if hasattr(study, "add_arguments"):
        study.add_arguments(own)
    arguments = own.parse_args(words)
    arguments.study = name
    if arguments.out is None and not arguments.quick:
        arguments.out = publication.RESULTS / f"{name}.json"
    made = publication.origin(["study", name, *words])
    try:
        content = {"made": made} | study.study(arguments)
    except publication.LeftOutError as reason:
        print(reason)
        return publication.LEFT_OUT
    failed = content.pop(publication.FAILED, [])
    publication.publish_study(arguments.out, content, study.as_markdown)
    for line in failed:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if failed else 0

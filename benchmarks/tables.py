"""All tables from the files of results: `make tables` writes them, `--check` fails where one differs from its file.

    python benchmarks/tables.py [--check] [--results DIR]

Beside every result NAME.json lies NAME.md. Documents have their tables between two lines,

    <!-- table: NAME -->
    <!-- end -->

and `document_tables.py` has a function for each NAME. With --results, tables are made of the files in DIR and no
document is changed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from document_tables import TABLES
from published import RESULTS, footer

from caransac._support.files import replacing

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", "docs/*.md", "benchmarks/results/README.md")
SCRIPTS = dict.fromkeys(("peers", "tuned", "paper"), "peers") | dict.fromkeys(("calibration", "robustness"), "weights")
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Results = dict[str, dict[str, Any]]


def read_results(folder: Path) -> Results:
    """All files of results by their names."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def texts_of_results(folder: Path, results: Results) -> dict[Path, str]:
    """The tables that lie beside the files."""
    texts = {}
    for name, content in results.items():
        script = importlib.import_module(SCRIPTS.get(name, name))
        texts[folder / f"{name}.md"] = script.as_markdown(content) + footer(content)
    return texts


def fill(text: str, results: Results) -> str:
    """A document with its tables made anew."""
    return MARKED.sub(lambda found: f"{found[1]}\n{table_of(found[2], results)}\n{found[3]}", text)


def table_of(name: str, results: Results) -> str:
    """A table by its name; a line that says so where the files have nothing for it."""
    try:
        return TABLES[name](results).strip("\n") + "\n"
    except KeyError as error:
        if name not in TABLES:
            raise SystemExit(f"no table {name!r}; there are {', '.join(TABLES)}") from error
        return f"*Not measured for this version yet ({error.args[0]}).*\n"


def texts_of_documents(results: Results) -> dict[Path, str]:
    """The documents that have tables."""
    paths = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    texts = {path: path.read_text() for path in paths}
    return {path: fill(text, results) for path, text in texts.items() if MARKED.search(text)}


def main() -> int:
    """Write or check all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table differs from its file")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="(default: benchmarks/results)")
    arguments = parser.parse_args()
    results = read_results(arguments.results)
    texts = texts_of_results(arguments.results, results) | texts_of_documents(results)
    if arguments.results != RESULTS:
        texts = {path: text for path, text in texts.items() if path.is_relative_to(arguments.results)}
    different = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    for path in different:
        print(f"{'differs from its file' if arguments.check else 'written'}: {path.relative_to(ROOT)}")
        if not arguments.check:
            with replacing(path) as temporary:
                temporary.write_text(texts[path])
    return 1 if arguments.check and different else 0


if __name__ == "__main__":
    sys.exit(main())

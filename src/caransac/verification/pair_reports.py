"""Write reports as CSV or Parquet, one line per pair."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from caransac._support.files import check_no_input, check_writable, replacing
from caransac._support.untrusted import WIDEST_NUMBER, check_size, escape_controls
from caransac.verification.pair_records import PairReport

COLUMNS = tuple(field.name for field in fields(PairReport))
DIGITS = {"ratio": 4, "confidence": 4, "ms": 2, "focal1": 2, "focal2": 2} | dict.fromkeys(
    ("focal_deviation1", "focal_deviation2"), 4
)


def check_pair_reports_path(path: Path, inputs: Iterable[Path]) -> None:
    """Raise now if the reports cannot be written, or if they would replace an input."""
    check_no_input(path, inputs, "report:")
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"report: {path} must end in .csv or .parquet")
    if path.suffix == ".parquet":
        _parquet()
    check_writable(path)


def write_pair_reports(path: Path, reports: Sequence[PairReport]) -> None:
    """Write one line per pair, sorted by image names. The suffix selects the format.

    For a pair from an earlier run, the values come from the database. Its confidence and duration come from the report
    file that is replaced; they are empty if that file does not have them.

    Image names are written unchanged, except that control characters are escaped. A name can therefore neither forge a
    line nor control a terminal. A name that looks like a spreadsheet formula stays unchanged.
    """
    before = _read(path) if path.exists() else {}
    lines = [_complete(line, before.get((line["image1"], line["image2"]))) for line in map(_as_line, reports)]
    lines.sort(key=lambda line: (line["image1"], line["image2"]))
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            arrow, parquet = _parquet()
            kinds = {"str": arrow.string(), "int": arrow.int64()}
            columns = [(field.name, kinds.get(str(field.type), arrow.float64())) for field in fields(PairReport)]
            parquet.write_table(arrow.Table.from_pylist(lines, arrow.schema(columns)), temporary)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)


def _as_line(report: PairReport) -> dict[str, Any]:
    """Convert a report to a line. Control characters in its texts are escaped."""
    return {name: escape_controls(value) if isinstance(value, str) else value for name, value in asdict(report).items()}


def _complete(line: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Complete a line from the previous file if both report the same outcome."""
    same = ("matches", "inliers", "config")
    if line["ms"] is None and before is not None and all(str(before[name]) == str(line[name]) for name in same):
        line |= {name: _number(before[name]) for name in ("confidence", "ms")}
    return {
        name: round(value, DIGITS[name]) if name in DIGITS and value is not None else value
        for name, value in line.items()
    }


def _number(value: Any) -> float | None:
    """Return a number from the previous file, or None if it is missing or invalid."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Read the lines of a file by image names; no lines if the file is not a report."""
    lines: Iterable[dict[str, Any]]
    if path.suffix == ".parquet":
        arrow, parquet = _parquet()
        try:
            about = parquet.read_metadata(path)
            check_size(about.num_rows * about.num_columns * WIDEST_NUMBER, path.stat().st_size, str(path))
            lines = parquet.read_table(path).to_pylist()
        except (arrow.ArrowException, OSError, ValueError):
            return {}
    else:
        try:
            with path.open(newline="", encoding="utf-8", errors="replace") as file:
                lines = list(csv.DictReader(file))
        except csv.Error:
            return {}
    return {(line["image1"], line["image2"]): line for line in lines if set(COLUMNS) <= set(line)}


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet reports need pyarrow: pip install 'caransac[reports]', or write .csv") from error
    return pyarrow, pyarrow.parquet

"""The matches file for the geometries of hloc's pairs, and the work file beside it that is filled during a run.

An HDF5 file is corrupt if its writer dies. Each batch therefore goes into an SQLite file first, in one transaction. The
matches file is written from that at the end, atomically.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caransac._support import interrupts
from caransac._support.arrays import is_real
from caransac._support.files import replacing_h5
from caransac._support.sqlite_files import check_schema, connect, explaining, transaction
from caransac._support.untrusted import parse_json
from caransac._support.untrusted_h5 import UntrustedGroup, read_h5
from caransac.verification.pair_records import SHAPES, Config, PairGeometry
from caransac.verification.provenance import UNRECORDED

OTHERWISE = "is not the work file of an unfinished run of this version ({error}): move it away to start again"
SETTINGS = "caransac_settings"  # attribute of the file: a JSON list; groups have an index into it
TABLES = (
    "CREATE TABLE IF NOT EXISTS run (overwrite INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS geometries (name TEXT PRIMARY KEY, settings TEXT, config INTEGER, num_matches INTEGER,"
    f" confidence REAL, ms REAL, inliers INTEGER, matches BLOB, {', '.join(f'{name} BLOB' for name in SHAPES)})",
)
KEYS = {"run": None, "geometries": "name"}
ATTRIBUTES = ("settings", "config", "num_matches", "confidence", "ms")


class KeptPair(NamedTuple):
    """Record of a pair that was verified before.

    Attributes:
        settings: settings of the verification.
        config: kind of geometry.
        num_matches: number of matches of the pair.
        confidence: probability that the geometry is right, or None.
        ms: duration in milliseconds.
        inliers: number of inliers.
    """

    settings: str
    config: Config
    num_matches: int
    confidence: float | None
    ms: float
    inliers: int


class HlocOutput:
    """The matches file and its work file."""

    def __init__(self, out: Path, settings: str, *, overwrite: bool) -> None:
        """Read existing files.

        Args:
            out: path of the matches file.
            settings: settings of the verification, which are stored with the pairs.
            overwrite: whether to ignore `out`. The work file is then used only if an interrupted run with the same
                settings and this option left it.

        Raises:
            OSError: an existing file cannot be read.
            ValueError: the content of an existing file is invalid.
        """
        self.out, self.work, self._settings = out, Path(f"{out}.partial"), settings
        self._connection: sqlite3.Connection | None = None
        self._replaces, self._kept = False, dict[str, KeptPair]()
        if self.work.exists():
            with explaining(self.work, OTHERWISE):
                self._replaces, self._kept = self._read_work()
        self._starts_anew = overwrite and not self._replaces
        if overwrite:
            kept = {} if self._starts_anew else self._kept
            self._replaces = True
            self._kept = {name: pair for name, pair in kept.items() if pair.settings == settings}

    def kept(self, names: Iterable[str]) -> dict[str, KeptPair]:
        """Return the groups that were verified before. Raise a ValueError if other software wrote one of them."""
        kept = {name: self._kept[name] for name in names if name in self._kept}
        if not self._replaces and self.out.exists():
            with read_h5(self.out) as file:
                texts = _read_settings(file)
                for name in names:
                    if name in file and name not in kept:
                        kept[name] = self._read_group(name, file.group(name), texts)
        return kept

    def write(self, found: Sequence[tuple[str, PairGeometry]]) -> None:
        """Write the geometries of groups to the work file in one transaction."""
        marks = ", ".join("?" * (len(ATTRIBUTES) + len(SHAPES) + 3))
        with explaining(self.work, OTHERWISE):
            connection = self._open_work()
            with transaction(connection):
                if self._starts_anew:
                    connection.execute("DELETE FROM geometries")
                connection.execute("DELETE FROM run")
                connection.execute("INSERT INTO run VALUES (?)", (self._replaces,))
                rows = (_as_row(name, geometry, self._settings) for name, geometry in found)
                connection.executemany(f"INSERT OR REPLACE INTO geometries VALUES ({marks})", rows)
        self._starts_anew = False

    def finish(self, names: Iterable[str], matches: UntrustedGroup) -> None:
        """Write the matches file with all verified groups, and remove the work file.

        Args:
            names: names of the groups.
            matches: h5 file with all matches of these groups.
        """
        with ExitStack() as opened:
            file = opened.enter_context(replacing_h5(self.out))
            before = opened.enter_context(read_h5(self.out)) if self._is_matches_file() else None
            settings_before = [] if before is None else _read_settings(before)
            texts: dict[str, int] = {}
            for name in names:
                interrupts.check()
                if (row := self._read_row(name)) is not None:
                    settings = row["settings"]
                    with explaining(self.work, OTHERWISE):
                        _write_group(file.create_group(name), row, matches.group(name))
                elif before is not None and name in before and "config" in before.group(name).attrs:
                    settings = _settings_of(before.group(name), settings_before)
                    before.group(name).copy_to(file.create_group(name))
                else:
                    continue
                file[name].attrs["settings"] = texts.setdefault(settings, len(texts))
            file.attrs[SETTINGS] = json.dumps(list(texts))
        self.close()
        self.work.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the work file, if it is open."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_matches_file(self) -> bool:
        """Return True if `out` is a file whose other groups are kept. A file to be replaced may have any format."""
        if not self.out.exists():
            return False
        if not self._replaces:
            return True
        import h5py

        return bool(h5py.is_hdf5(self.out))

    def _read_row(self, name: str) -> sqlite3.Row | None:
        """Read the row of a group from the work file."""
        if not self.work.exists():
            return None
        with explaining(self.work, OTHERWISE):
            row: sqlite3.Row | None = (
                self._open_work().execute("SELECT * FROM geometries WHERE name = ?", (name,)).fetchone()
            )
        return row

    def _open_work(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self.work)
            self._connection.row_factory = sqlite3.Row
            check_schema(self._connection, KEYS, self.work)
            with transaction(self._connection):
                for command in TABLES:
                    self._connection.execute(command)
        return self._connection

    def _read_work(self) -> tuple[bool, dict[str, KeptPair]]:
        """Return whether the earlier run was overwriting, and its results."""
        connection = self._open_work()
        run = connection.execute("SELECT overwrite FROM run").fetchone()
        rows = connection.execute(f"SELECT name, {', '.join(ATTRIBUTES)}, inliers FROM geometries")
        kept = {name: _as_kept(*rest) for name, *rest in rows}
        return bool(run and run["overwrite"]), kept

    def _read_group(self, name: str, group: UntrustedGroup, texts: Sequence[str]) -> KeptPair:
        """Read the record of a pair from the matches file."""
        attributes = group.attrs
        try:
            return KeptPair(
                _settings_of(group, texts),
                Config[str(attributes["config"]).upper()],
                int(attributes["num_matches"]),
                float(attributes["confidence"]) if "confidence" in attributes else None,
                float(attributes["ms"]),
                int((group.array("matches0") >= 0).sum()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"--out: {self.out} has {name}, which caransac verify did not write: choose another path, or replace "
                "it with --overwrite"
            ) from error


def _as_kept(settings: Any, config: Any, num_matches: Any, confidence: Any, ms: Any, inliers: Any) -> KeptPair:
    """Create a record from a row of the work file. Raise a TypeError if its values are impossible."""
    numbers = [num_matches, ms, inliers] if confidence is None else [num_matches, ms, inliers, confidence]
    if not isinstance(settings, str) or config not in list(Config) or not all(is_real(number) for number in numbers):
        raise TypeError(f"a row with {config}, {num_matches}, {inliers}")
    return KeptPair(settings, Config(config), int(num_matches), confidence, float(ms), int(inliers))


def _as_row(name: str, found: PairGeometry, settings: str) -> tuple[Any, ...]:
    """Return a row of the work file."""
    matrices = (getattr(found, each) for each in SHAPES)
    return (
        name,
        settings,
        int(found.config),
        found.num_matches,
        found.confidence,
        found.elapsed_ms,
        len(found.matches),
        found.matches.astype("<u4").tobytes(),
        *(None if matrix is None else np.ascontiguousarray(matrix, "<f8").tobytes() for matrix in matrices),
    )


def _write_group(group: Any, row: sqlite3.Row, source: UntrustedGroup) -> None:
    """Write the group of a pair: a copy of the source without outliers, and the geometry."""
    if len(row["matches"]) % 8 or any(row[name] and len(row[name]) != 8 * math.prod(SHAPES[name]) for name in SHAPES):
        raise TypeError("arrays of other shapes")
    inliers = np.frombuffer(row["matches"], "<u4").reshape(-1, 2)
    partners = np.full_like(source.array("matches0"), -1)
    partners[inliers[:, 0]] = inliers[:, 1]
    group.create_dataset("matches0", data=partners)
    if "matching_scores0" in source:
        scores = source.array("matching_scores0")
        scores[partners < 0] = 0
        group.create_dataset("matching_scores0", data=scores)
    for name, shape in SHAPES.items():
        if row[name] is not None:
            group.create_dataset(name, data=np.frombuffer(row[name], "<f8").reshape(shape))
    group.attrs["config"] = Config(row["config"]).name.lower()
    for name in ("num_matches", "confidence", "ms"):
        if row[name] is not None:
            group.attrs[name] = row[name]


def _read_settings(file: UntrustedGroup) -> list[str]:
    try:
        return [str(text) for text in parse_json(file.attrs.get(SETTINGS, "[]"))]
    except (TypeError, ValueError):
        return []


def _settings_of(group: UntrustedGroup, texts: Sequence[str]) -> str:
    index = group.attrs.get("settings", -1)
    return texts[index] if index in range(len(texts)) else UNRECORDED

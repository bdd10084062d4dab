"""The table of geometries in a COLMAP database, and two of our own beside it that COLMAP does not look at.

`two_view_geometries` does not say who made a row. `caransac_geometries` has a line for each one of ours, with the
settings that it was verified with; its numbers of inliers and config tell whether the row is still the one that we
wrote. A line is outdated if --overwrite is to replace the row: it stays until there is another, whatever happens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from caransac._support.sqlite_files import in_order
from caransac.geometry import Array, quaternion_from_rotation
from caransac.verification.pair_records import Config, PairGeometry

# Older databases lack the last ones.
COLUMNS = ("pair_id", "rows", "cols", "data", "config", "F", "E", "H", "qvec", "tvec")
OUR_TABLES = (
    "CREATE TABLE IF NOT EXISTS caransac_settings (settings_id INTEGER PRIMARY KEY, settings TEXT UNIQUE NOT NULL)",
    "CREATE TABLE IF NOT EXISTS caransac_geometries (pair_id INTEGER PRIMARY KEY, settings_id INTEGER, rows INTEGER,"
    " config INTEGER, outdated INTEGER NOT NULL)",
)
OUR_KEYS = {"caransac_settings": "settings_id", "caransac_geometries": "pair_id"}
FOUND = "matches LEFT JOIN two_view_geometries AS found USING (pair_id)"
ORIGINS = (
    f"{FOUND} LEFT JOIN caransac_geometries AS origin ON origin.pair_id = found.pair_id AND origin.rows = found.rows"
    " AND origin.config = found.config"
)


class MatchedPair(NamedTuple):
    """A pair with matches, and what is known of its geometry.

    Attributes:
        key: the pair's number.
        matches: how many it has.
        inliers: of its geometry; None where there is none.
        config: of its geometry; None where there is none.
        settings: what that was verified with, None if not by us.
        outdated: whether it is to be replaced.
    """

    key: int
    matches: int
    inliers: int | None
    config: int | None
    settings: str | None
    outdated: bool

    @property
    def is_verified(self) -> bool:
        """Whether it has a geometry; an undefined one is a place that some tool made for the verification to come."""
        return self.config not in (None, Config.UNDEFINED)


class GeometryTable:
    """Reads and writes geometries, in the transactions of the caller."""

    def __init__(self, connection: sqlite3.Connection, settings: str) -> None:
        """Look at the tables.

        Args:
            connection: of the database.
            settings: what geometries are going to be verified with.
        """
        self._connection, self._settings = connection, settings
        there = connection.execute("PRAGMA table_info(two_view_geometries)")
        self._columns = [name for _, name, *_ in there if name in COLUMNS]

    def read_pairs(self) -> Iterator[MatchedPair]:
        """All pairs with matches, in order."""
        columns, tables, texts = "NULL, 0", FOUND, dict[int | None, str]()
        if self._has_our_tables():  # the texts apart: a join would have the same long one in memory for every pair
            columns, tables = "settings_id, outdated", ORIGINS
            texts = dict(
                in_order(
                    self._connection.execute("SELECT settings_id, settings FROM caransac_settings ORDER BY settings_id")
                )
            )
        rows = self._connection.execute(
            f"SELECT matches.pair_id, matches.rows, found.rows, found.config, {columns} FROM {tables}"
            " WHERE matches.rows > 0 ORDER BY matches.pair_id"
        )
        for key, matches, inliers, config, settings_id, outdated in in_order(rows):
            yield MatchedPair(key, matches, inliers, config, texts.get(settings_id), bool(outdated))

    def mark_outdated(self, keys: Sequence[int]) -> None:
        """Note that geometries are to be replaced."""
        self._make_our_tables()
        self._connection.executemany(
            "INSERT OR REPLACE INTO caransac_geometries SELECT pair_id, NULL, rows, config, 1 FROM two_view_geometries"
            " WHERE pair_id = ?",
            ((key,) for key in keys),
        )

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Write geometries, in place of those that are there."""
        settings_id = self._make_our_tables()
        names, places = ", ".join(self._columns), ", ".join("?" * len(self._columns))
        rows = [_as_row(geometry) for geometry in found]
        self._connection.executemany(
            f"INSERT OR REPLACE INTO two_view_geometries ({names}) VALUES ({places})",
            ([row[name] for name in self._columns] for row in rows),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO caransac_geometries VALUES (?, ?, ?, ?, 0)",
            ((row["pair_id"], settings_id, row["rows"], row["config"]) for row in rows),
        )

    def forget_outdated(self) -> None:
        """Note that nothing more is to be replaced."""
        if self._has_our_tables():
            self._connection.execute("DELETE FROM caransac_geometries WHERE outdated")

    def _has_our_tables(self) -> bool:
        there = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'caransac_geometries'")
        return there.fetchone() is not None

    def _make_our_tables(self) -> int:
        """Make them as needed; returns the number of the settings."""
        for command in OUR_TABLES:
            self._connection.execute(command)
        self._connection.execute("INSERT OR IGNORE INTO caransac_settings (settings) VALUES (?)", (self._settings,))
        found = self._connection.execute(
            "SELECT settings_id FROM caransac_settings WHERE settings = ?", (self._settings,)
        )
        return int(found.fetchone()[0])


def blob(matrix: Array) -> bytes:
    """An array as COLMAP stores it."""
    return np.ascontiguousarray(matrix, "<f8").tobytes()


def _as_row(found: PairGeometry) -> dict[str, Any]:
    """Values of `COLUMNS` by name."""
    qvec = None if found.R is None else quaternion_from_rotation(found.R)
    matrices = {"F": found.F, "E": found.E, "H": found.H, "qvec": qvec, "tvec": found.t}
    return {
        "pair_id": found.key,
        "rows": len(found.matches),
        "cols": 2,
        "data": found.matches.astype("<u4").tobytes(),
        "config": int(found.config),
        **{name: None if matrix is None else blob(matrix) for name, matrix in matrices.items()},
    }

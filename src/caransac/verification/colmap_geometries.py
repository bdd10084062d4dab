"""The table of geometries in a COLMAP database, and two tables of our own, which COLMAP ignores.

`two_view_geometries` does not record who wrote a row. `caransac_geometries` has an entry for each row of ours, with its
settings. The number of inliers and the config in the entry show whether the row is still ours. An entry is outdated if
--overwrite is going to replace its row. The row stays until the new one exists, whatever happens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from caransac._support.sqlite_files import in_order
from caransac.geometry import Array, quaternion_from_rotation
from caransac.verification.pair_records import Config, PairGeometry

# Older databases lack the last columns.
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
    """A pair with matches, and its geometry if there is one.

    Attributes:
        key: number of the pair.
        matches: number of matches.
        inliers: number of inliers of the geometry; None if there is no geometry.
        config: kind of the geometry; None if there is no geometry.
        settings: settings of the verification; None if other software verified the pair.
        outdated: whether the geometry is going to be replaced.
    """

    key: int
    matches: int
    inliers: int | None
    config: int | None
    settings: str | None
    outdated: bool

    @property
    def is_verified(self) -> bool:
        """Whether the pair has a geometry. An undefined one is only a placeholder that another tool wrote."""
        return self.config not in (None, Config.UNDEFINED)


class GeometryTable:
    """Read and write geometries, within the caller's transactions."""

    def __init__(self, connection: sqlite3.Connection, settings: str) -> None:
        """Inspect the tables.

        Args:
            connection: connection to the database.
            settings: settings of the verification to come.
        """
        self._connection, self._settings = connection, settings
        there = connection.execute("PRAGMA table_info(two_view_geometries)")
        self._columns = [name for _, name, *_ in there if name in COLUMNS]

    def read_pairs(self) -> Iterator[MatchedPair]:
        """Yield all pairs with matches, in order."""
        columns, tables, texts = "NULL, 0", FOUND, dict[int | None, str]()
        if self._has_our_tables():  # settings are read separately; a join would copy the same long text for every pair
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
        """Record that geometries are going to be replaced."""
        self._make_our_tables()
        self._connection.executemany(
            "INSERT OR REPLACE INTO caransac_geometries SELECT pair_id, NULL, rows, config, 1 FROM two_view_geometries"
            " WHERE pair_id = ?",
            ((key,) for key in keys),
        )

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Write geometries and replace existing ones."""
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
        """Record that all outdated geometries are replaced."""
        if self._has_our_tables():
            self._connection.execute("DELETE FROM caransac_geometries WHERE outdated")

    def _has_our_tables(self) -> bool:
        there = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'caransac_geometries'")
        return there.fetchone() is not None

    def _make_our_tables(self) -> int:
        """Create our tables if they are missing. Return the number of the settings."""
        for command in OUR_TABLES:
            self._connection.execute(command)
        self._connection.execute("INSERT OR IGNORE INTO caransac_settings (settings) VALUES (?)", (self._settings,))
        found = self._connection.execute(
            "SELECT settings_id FROM caransac_settings WHERE settings = ?", (self._settings,)
        )
        return int(found.fetchone()[0])


def blob(matrix: Array) -> bytes:
    """Return the bytes of an array in COLMAP's format."""
    return np.ascontiguousarray(matrix, "<f8").tobytes()


def _as_row(found: PairGeometry) -> dict[str, Any]:
    """Return the values of `COLUMNS` by name."""
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

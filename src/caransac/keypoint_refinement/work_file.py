"""The work file of a refinement: the offsets of the pairs that are aligned already, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from caransac._support.sqlite_files import check_schema, connect, explaining, in_order, read_blob, transaction
from caransac.keypoint_refinement.keypoint_patches import ALIGNED, PairOffsets

OTHERWISE = "is not the work file of an unfinished refinement of this version ({error}): move it away to start again"
TABLES = (
    "CREATE TABLE IF NOT EXISTS run (identity TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS offsets (pair INTEGER PRIMARY KEY, matches INTEGER NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB NOT NULL)",
)
KEYS = {"run": None, "offsets": "pair"}


def work_file_of(target: Path) -> Path:
    """Return the path of the work file of a refinement, beside the file that is written."""
    return Path(f"{target}.refining")


class WorkFile:
    """Offsets of aligned pairs. A run that was interrupted continues with them."""

    def __init__(self, path: Path, identity: str) -> None:
        """Open or create the file. Offsets that belong to another identity are deleted."""
        self.path = path
        with explaining(path, OTHERWISE):
            self._connection = connect(path)
            try:
                check_schema(self._connection, KEYS, path)
                with transaction(self._connection):
                    for command in TABLES:
                        self._connection.execute(command)
                    row = self._connection.execute("SELECT identity FROM run").fetchone()
                    if row is None or row[0] != identity:
                        self._connection.execute("DELETE FROM run")
                        self._connection.execute("DELETE FROM offsets")
                        self._connection.execute("INSERT INTO run VALUES (?)", (identity,))
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> WorkFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def count(self) -> dict[int, tuple[int, int]]:
        """Return the numbers of matches and of aligned matches of the pairs that are done."""
        with explaining(self.path, OTHERWISE):
            rows = self._connection.execute("SELECT pair, matches, rows FROM offsets ORDER BY pair")
            return {pair: (matches, aligned) for pair, matches, aligned in in_order(rows)}

    def write(self, found: Sequence[PairOffsets]) -> None:
        """Write the offsets of a batch in one transaction."""
        rows = [(each.key, each.num_matches, len(each.aligned), 1, each.aligned.tobytes()) for each in found]
        with explaining(self.path, OTHERWISE), transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?, ?)", rows)

    def read(self, pair: int) -> np.ndarray:
        """Read the records `ALIGNED` of a pair."""
        with explaining(self.path, OTHERWISE):
            found = read_blob(self._connection, "offsets", "pair", pair, ALIGNED.itemsize)
        return np.frombuffer(b"" if found is None else found[2], ALIGNED)

    def remove(self) -> None:
        """Close and delete the file."""
        self._connection.close()
        self.path.unlink(missing_ok=True)

"""SQLite files: transactions that are whole or not there, and errors that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caransac._support.untrusted import memory_limit

LOCK_TIMEOUT_S = 10.0


def connect(path: Path, lock_timeout_s: float = LOCK_TIMEOUT_S) -> sqlite3.Connection:
    """A connection without transactions but those of `transaction`; names that are not UTF-8 are read with escapes.

    The file may be a stranger's: no value may take more memory than `untrusted.memory_limit` (a column can be computed,
    so that a blob need not be in the file), and what its schema computes may use harmless functions alone.
    """
    connection = sqlite3.connect(path, timeout=lock_timeout_s, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    connection.execute("PRAGMA trusted_schema = OFF")
    if hasattr(connection, "setlimit"):  # from Python 3.11 on; else a value has a gigabyte at most
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(memory_limit(), 2**31 - 1))
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all of the block, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def explaining(path: Path, otherwise: str) -> Iterator[None]:
    """Turn SQLite's errors, and those of values that are something else than they should be, into such that help.

    Args:
        path: the file.
        otherwise: what it is if it is not what it should be, and what to do then; ``{error}`` is what SQLite says.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise OSError(f"{path} is locked: another program is writing to it; wait for it or end it") from error
        if "readonly" in str(error):
            raise PermissionError(f"{path} cannot be written to; copy the database elsewhere") from error
        if "disk" in str(error):
            raise OSError(f"{path} cannot be written to ({error}): make room, then continue") from error
        raise OSError(f"{path}: {error}") from error
    except (sqlite3.DatabaseError, LookupError, OverflowError, TypeError) as error:  # or values of other types
        raise ValueError(f"{path} {otherwise.format(error=error)}") from error

"""SQLite files: atomic transactions, schemas without computed values, and errors that explain what to do.

A database schema is a program: triggers, views, generated columns, defaults and indexes can compute anything while the
file is read or written. A file from another source is used only after `check_schema`, which rejects all of these.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from caransac._support import interrupts
from caransac._support.untrusted import check_size, memory_limit

LOCK_TIMEOUT_S = 10.0
OPERATIONS_PER_CHECK = 10_000  # SQLite operations between two checks for Ctrl-C; less than a millisecond
EXPRESSION = -2  # column number of an index entry that is computed from an expression


def connect(path: Path, lock_timeout_s: float = LOCK_TIMEOUT_S) -> sqlite3.Connection:
    """Open a connection whose only transactions are those of `transaction`. Names that are not UTF-8 are escaped.

    The file is untrusted. No value may take more memory than `untrusted.memory_limit`, and every query ends
    soon after Ctrl-C. Call `check_schema` before anything else.
    """
    connection = sqlite3.connect(path, timeout=lock_timeout_s, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    for pragma in ("trusted_schema = OFF", "foreign_keys = OFF", "ignore_check_constraints = ON"):
        connection.execute(f"PRAGMA {pragma}")
    if hasattr(connection, "setlimit"):  # from Python 3.11; before that, a value may take up to a gigabyte
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(memory_limit(), 2**31 - 1))
    # Python checks for signals when it calls this. SQLite's own loops never do.
    connection.set_progress_handler(interrupts.is_requested, OPERATIONS_PER_CHECK)
    return connection


def check_schema(connection: sqlite3.Connection, keys: Mapping[str, str | None], path: Path) -> None:
    """Raise if a database has triggers, or tables that are not plain rows of stored values.

    Args:
        connection: connection to the database.
        keys: primary key of each table that is used: the name of one column, or None if the table has no key. The keys
            are checked because duplicate rows could make a join larger than memory. Missing tables are skipped.
        path: path of the database, for the message.

    Raises:
        ValueError: an object is rejected. The message names it and explains what to do.
    """
    for kind, name, table, text in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall():
        used, written = str(name).lower() in keys, str(text).upper()
        if kind == "trigger":
            _refuse(path, f"a trigger, {name}", f"DROP TRIGGER {name}")
        elif used and kind == "view":
            _refuse(path, f"a view in the place of the table {name}", f"DROP VIEW {name}")
        elif used and kind == "table" and written.startswith("CREATE VIRTUAL"):
            _refuse(path, f"a virtual table, {name}", f"DROP TABLE {name}")
        elif used and kind == "table":
            _check_columns(connection, str(name).lower(), keys[str(name).lower()], path)
        elif kind == "index" and str(table).lower() in keys and text is not None:
            columns = connection.execute(f"PRAGMA index_xinfo({_quote(str(name))})").fetchall()
            if "WHERE" in written or any(column == EXPRESSION for _, column, *_ in columns):
                _refuse(path, f"a computed index, {name}", f"DROP INDEX {name}")


def _check_columns(connection: sqlite3.Connection, table: str, key: str | None, path: Path) -> None:
    """Raise if a table has a different primary key or computed columns."""
    keys = []
    # Use the pragma itself: a table of the file can replace the table-valued function of the same name.
    for _, name, _, _, default, key_number, hidden in connection.execute(f"PRAGMA table_xinfo({_quote(table)})"):
        if hidden:
            _refuse(path, f"a generated column, {table}.{name}")
        if default is not None and "(" in str(default):
            _refuse(path, f"a computed default, that of {table}.{name}")
        if key_number:
            keys.append(name)
    if keys != ([] if key is None else [key]):
        raise ValueError(f"{path}: the primary key of {table} is not {key}: make the database again")


def _refuse(path: Path, what: str, command: str = "") -> NoReturn:
    how = f"remove it with {command}" if command else "copy the data into a new database"
    raise ValueError(f"{path} has {what}, which computes when the database is used: {how}, if you trust the file")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_order(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows in key order. Raise if a key, the first column, is not a number or occurs twice.

    A forged file can contain the same page of rows any number of times.
    """
    before: int | None = None
    for row in rows:
        if not isinstance(row[0], int):
            raise sqlite3.DatabaseError(f"a row with the number {row[0]!r}")
        if before is not None and row[0] <= before:
            raise sqlite3.DatabaseError(f"row {row[0]} comes after row {before}")
        before = row[0]
        yield row


def read_blob(
    connection: sqlite3.Connection, table: str, key: str, number: int, item_bytes: int
) -> tuple[int, int, bytes] | None:
    """Read an array from a row: number of rows, number of columns, and bytes. Return None if there is no such row.

    Memory is allocated only if the stored length matches the declared shape.

    Args:
        connection: connection to the database.
        table: name of a table with the columns `rows`, `cols` and `data`.
        key: name of the key column.
        number: key of the row.
        item_bytes: bytes of one element of the array.

    Raises:
        ValueError: the value is not an array, has the wrong length, or takes too much memory.
    """
    where = f"FROM {table} WHERE {key} = ?"
    about = connection.execute(f"SELECT rows, cols, typeof(data), length(data) {where}", (number,)).fetchone()
    if about is None:
        return None
    rows, cols, kind, length = about
    if not isinstance(rows, int) or not isinstance(cols, int) or min(rows, cols) < 0:
        raise ValueError(f"it says it has {rows!r} rows of {cols!r}")
    if (kind, length) != ("blob", item_bytes * rows * cols) and (kind, rows * cols) != ("null", 0):
        raise ValueError(f"it has {length or 0} bytes of {kind} for {rows} rows of {cols}")
    check_size(length or 0, length or 0, f"an array of {table}")
    (data,) = connection.execute(f"SELECT data {where}", (number,)).fetchone()
    return rows, cols, data or b""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the whole block, or roll it back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # an interruption or a full disk may have rolled it back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def explaining(path: Path, otherwise: str) -> Iterator[None]:
    """Turn SQLite's errors, and errors about values of wrong types, into errors that help the user.

    Args:
        path: the file.
        otherwise: message for an invalid file: its problem and what to do. ``{error}`` is replaced
            by SQLite's message.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):  # only the progress handler interrupts
            interrupts.check()
            raise KeyboardInterrupt from error
        if "locked" in str(error):
            raise OSError(f"{path} is locked: another program is writing to it; wait for it or end it") from error
        if "readonly" in str(error):
            raise PermissionError(f"{path} cannot be written to; copy the database elsewhere") from error
        if "disk" in str(error):
            raise OSError(f"{path} cannot be written to ({error}): make room, then continue") from error
        raise OSError(f"{path}: {error}") from error
    except (sqlite3.DatabaseError, LookupError, OverflowError, TypeError) as error:  # damaged, or of wrong types
        raise ValueError(f"{path} {otherwise.format(error=error)}") from error

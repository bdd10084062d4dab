"""Malicious databases, and the reaction of ``caransac verify`` to each.

A small database of synthetic pairs is changed in one way and then verified in a separate process. The study reports the
exit code, the message, processor seconds, peak memory beyond that of an undisturbed run, the number of verified pairs,
and whether all previous content of the file is still there. A run of more than a minute is killed and counts as hung.
Needs the extra 'colmap', and Linux.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from caransac_lab.bench.publication import FAILED, Content, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.bench.studies.interrupts import make_database

NAME = "hostile_databases"
PAIRS, HANGS_S = 6, 60.0
UP = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up)"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\n\rVerified 9999 pairs"
FIRST = f"{2147483647 + 2}"  # the number of the first pair: images 1 and 2
INPUTS = (
    "SELECT camera_id, model, width, height, params FROM cameras",
    "SELECT image_id, name, camera_id FROM images",
    "SELECT image_id, rows, cols, data FROM keypoints",
    "SELECT pair_id, rows, cols, data FROM matches",
)
PROGRAM = """
import sys
from caransac.cli import main
code = main()
print("peak", *(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""
Change = Callable[[sqlite3.Connection], None]


def commands(*texts: str) -> Change:
    """Return a change by SQL."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA legacy_alter_table = ON")  # keeps triggers and views unchanged
        for text in texts:
            connection.execute(text)

    return change


def store(table_name: str, column: str, value: object, where: str = "1") -> Change:
    """Return a change of values."""
    command = f"UPDATE {table_name} SET {column} = ? WHERE {where}"

    def change(connection: sqlite3.Connection) -> None:
        connection.execute(command, (value,))

    return change


def forge_schema(connection: sqlite3.Connection, before: str, after: str) -> None:
    """Change the text of a table's definition without SQLite's checks."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'matches'", (before, after))


HOSTILE: dict[str, Change] = {
    "a trigger that deletes everything": commands(
        "CREATE TRIGGER t AFTER INSERT ON two_view_geometries BEGIN"
        " DELETE FROM matches; DELETE FROM images; DELETE FROM keypoints; END"
    ),
    "a trigger that fills the disk": commands(
        "CREATE TABLE junk (data)",
        "CREATE TRIGGER t AFTER INSERT ON two_view_geometries BEGIN INSERT INTO junk VALUES (zeroblob(900000000)); END",
    ),
    "a trigger that never ends": commands(
        "CREATE TABLE junk (data)",
        f"CREATE TRIGGER t AFTER INSERT ON two_view_geometries BEGIN INSERT INTO junk {UP} SELECT n FROM up; END",
    ),
    "a view for a table, with a trigger instead of writing": commands(
        "ALTER TABLE two_view_geometries RENAME TO old",
        "CREATE VIEW two_view_geometries AS SELECT * FROM old",
        "CREATE TRIGGER t INSTEAD OF INSERT ON two_view_geometries BEGIN DELETE FROM matches; END",
    ),
    "a view of matches without end": commands(
        "ALTER TABLE matches RENAME TO old",
        f"CREATE VIEW matches AS {UP} SELECT n AS pair_id, 9 AS rows, 2 AS cols, zeroblob(72) AS data FROM up",
    ),
    "a generated column of 900 MB": commands("ALTER TABLE keypoints ADD COLUMN more AS (zeroblob(900000000))"),
    "matches that are generated": commands(
        "ALTER TABLE matches RENAME TO old",
        "CREATE TABLE matches (pair_id INTEGER PRIMARY KEY, rows, cols, data AS (zeroblob(8 * rows)))",
        "INSERT INTO matches SELECT pair_id, 100000000, 2 FROM old",
    ),
    "a computed default": commands("ALTER TABLE two_view_geometries ADD COLUMN more DEFAULT (zeroblob(900000000))"),
    "a computed index": commands("CREATE INDEX i ON two_view_geometries (zeroblob(900000000 + rows))"),
    "a constraint that computes": commands(
        "ALTER TABLE two_view_geometries ADD COLUMN more CHECK (length(hex(zeroblob(400000000))) = 0)"
    ),
    "a virtual table": commands(
        "ALTER TABLE images RENAME TO old", "CREATE VIRTUAL TABLE images USING fts3 (image_id, name, camera_id)"
    ),
    "rows without a key, many times": commands(
        "ALTER TABLE matches RENAME TO old",
        "CREATE TABLE matches (pair_id INTEGER, rows, cols, data)",
        f"INSERT INTO matches SELECT {FIRST}, 1, 2, zeroblob(8) FROM old, old, old, old",
    ),
    "an unknown order of texts": partial(forge_schema, before="rows INTEGER", after="rows INTEGER COLLATE mine"),
    "a definition that is no SQL": partial(forge_schema, before="CREATE TABLE", after="DROP EVERYTHING"),
    "an array of 100 MB for 120 rows": store("matches", "data", bytes(100_000_000), f"pair_id = {FIRST}"),
    "matches that say they have 2^40 rows": store("matches", "rows", 2**40, f"pair_id = {FIRST}"),
    "matches of keypoints that are not there": store(
        "matches", "data", np.full((120, 2), 2**32 - 1, np.uint32).tobytes(), f"pair_id = {FIRST}"
    ),
    "keypoints that are no numbers": store(
        "keypoints", "data", np.full((120, 2), np.nan, np.float32).tobytes(), "image_id = 1"
    ),
    "a focal length of 1e-300": store("cameras", "params", np.array([1e-300, 320, 240]).tobytes(), "camera_id = 1"),
    "a camera of a kind that nobody knows": store("cameras", "model", 2**40, "camera_id = 1"),
    "an image 2^62 pixels wide": store("cameras", "width", 2**62, "camera_id = 1"),
    "a name that steers the terminal, and no matches": commands(
        f"UPDATE images SET name = '{ESCAPE}' WHERE image_id = 1",
        f"UPDATE matches SET rows = 7 WHERE pair_id = {FIRST}",
    ),
    "numbers of pairs from beyond": commands(
        f"UPDATE matches SET pair_id = 9223372036854775807 WHERE pair_id = {FIRST}"
    ),
    "our own settings, with the last number there is": commands(
        "CREATE TABLE caransac_settings (settings_id INTEGER PRIMARY KEY, settings TEXT NOT NULL UNIQUE)",
        "INSERT INTO caransac_settings VALUES (9223372036854775807, 'mine')",
    ),
}


def read_inputs(database: Path) -> list[Any]:
    """Read the inputs of the verification that are stored in tables."""
    connection = sqlite3.connect(database)
    try:
        return [connection.execute(query).fetchall() for query in INPUTS]
    except sqlite3.DatabaseError:
        return []
    finally:
        connection.close()


def count_verified(database: Path) -> int:
    """Count the geometries in the file."""
    connection = sqlite3.connect(database)
    try:
        kinds = dict(connection.execute("SELECT name, type FROM sqlite_master"))
        if kinds.get("two_view_geometries") != "table":
            return 0
        return int(connection.execute("SELECT count(*) FROM two_view_geometries").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0
    finally:
        connection.close()


def verify(database: Path) -> dict[str, Any]:
    """Run the command. Return its outcome."""
    command = [sys.executable, "-c", PROGRAM, "verify", str(database), "--workers", "1", "--quiet"]
    before = os.times()
    try:
        done = subprocess.run(command, capture_output=True, timeout=HANGS_S, check=False)
    except subprocess.TimeoutExpired:
        return {"exit": "hung", "said": "", "seconds": HANGS_S, "megabytes": 0.0}
    after = os.times()
    peak = re.search(rb"peak (\d+)", done.stdout)
    return {
        "exit": done.returncode,
        "said": shorten(done.stderr.decode(errors="replace"), database),
        "seconds": sum(after[k] - before[k] for k in (2, 3)),
        "megabytes": int(peak[1]) / 2**10 if peak else 0.0,
    }


def shorten(text: str, database: Path) -> str:
    """Return the most informative line without the folder. Control characters are visible."""
    lines = [line for line in re.split(r"[\r\n]", text) if line.strip() and "Traceback" not in line]
    told = [line for line in lines if line.startswith("caransac: ")] or lines[-1:]
    line = (told[0] if told else "").removeprefix("caransac: ").replace(f"{database.parent}{os.sep}", "")
    shown = "".join(each if each.isprintable() else f"{each!r}"[1:-1] for each in line)
    return ("Traceback: " if "Traceback" in text else "") + shown


def measure(change: Change | None, scratch: Path) -> dict[str, Any]:
    """Create the database, verify it, and inspect it."""
    database = scratch / "database.db"
    database.unlink(missing_ok=True)
    shutil.copyfile(scratch / "good.db", database)
    if change is not None:
        connection = sqlite3.connect(database)
        change(connection)
        connection.commit()
        connection.close()
    whole = database.read_bytes()
    found = verify(database)
    intact = database.read_bytes() == whole
    if not intact and found["exit"] != 2:  # something was verified, so the inputs must be unchanged
        before = scratch / "before.db"
        before.write_bytes(whole)
        intact = read_inputs(database) == read_inputs(before) != []
    return found | {"verified": count_verified(database), "intact": intact}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the table."""
    head = "# Hostile databases\n\n`caransac-lab study hostile_databases --help` describes the runs.\n\n"
    return head + hostile_table(content)


def hostile_table(content: dict[str, Any]) -> str:
    """Format every database with its outcome."""
    header = [
        "the file has",
        "exit code",
        "message",
        "pairs verified",
        "data intact",
        "CPU s",
        "extra memory, MB",
    ]
    usual = content["rows"]["nothing"]["megabytes"]
    lines = [
        [
            in_words(NAME, what),
            str(row["exit"]),
            f"`{row['said']}`".replace("|", "\\|") if row["said"] else "",
            str(row["verified"]),
            "yes" if row["intact"] else "**no**",
            f"{row['seconds']:.1f}",
            f"{max(row['megabytes'] - usual, 0):.0f}",
        ]
        for what, row in content["rows"].items()
    ]
    return table(header, lines)


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    rows = dict[str, Any]()
    chosen = dict(list(HOSTILE.items())[::8]) if arguments.quick else HOSTILE
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        make_database(scratch, PAIRS)
        (scratch / "database.db").rename(scratch / "good.db")
        for what, change in {"nothing": None, **chosen}.items():
            rows[what] = measure(change, scratch)
            print(what, rows[what], flush=True)
    return {"pairs": PAIRS, "rows": rows, FAILED: [what for what, row in rows.items() if is_bad(row)]}


def is_bad(row: dict[str, Any]) -> bool:
    """Return True if a run neither verified what it can nor refused with one line."""
    return row["exit"] not in (0, 2, 3) or not row["intact"] or "Traceback" in row["said"]

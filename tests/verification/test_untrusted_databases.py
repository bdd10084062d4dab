"""Malicious databases and hloc files."""

import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import h5py
import pytest
from bombs import ELSEWHERE, little_memory, write_secrets
from databases import execute, make_database, pair_id, query, read_geometries, some_pairs
from hloc_files import arguments, group, inputs_of, put

from caransac._support.sqlite_files import read_blob
from caransac.cli import main
from caransac.verification import ColmapDatabase, HlocFiles, VerificationOptions, colmap, verify

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("make", ELSEWHERE)
def test_other_files_are_not_matches_of_hloc(files, make, capsys):
    write_secrets(files)
    with h5py.File(files / "matches.h5", "a") as file:
        del file[group(1)]["matches0"]
        make(file[group(1)], files)
        file[group(1)]["matches0"] = h5py.SoftLink("pair")
    assert main(arguments(files)) == 3
    printed = capsys.readouterr()
    assert "Verified 4 pairs" in printed.out
    assert "skipped day/1/left.jpg and night/1.jpg: " in printed.err


def test_outputs_are_not_copied_from_elsewhere(files, capsys):
    assert main(arguments(files)) == 0
    out = files / "out" / "verified.h5"
    write_secrets(files)
    with h5py.File(out, "a") as file:
        file[group(1)]["elsewhere"] = h5py.ExternalLink(str(files / "secret.h5"), "/pair")
    put(files, "matches", group(1), "matches0", None)
    before = out.read_bytes()
    assert main(arguments(files, "--overwrite")) == 2
    assert "verified.h5: " in capsys.readouterr().err and out.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE geometries SET config = 99",
        "UPDATE geometries SET config = 'text'",
        "UPDATE geometries SET ms = 'text'",
        "UPDATE geometries SET settings = NULL",
        "UPDATE geometries SET inliers = x'00'",
        "UPDATE geometries SET matches = x'00'",
        "UPDATE geometries SET matches = 7",
        "UPDATE geometries SET matches = x'ffffffffffffffff'",
        "UPDATE geometries SET F = x'00'",
        "UPDATE geometries SET F = 3",
        "ALTER TABLE geometries RENAME COLUMN matches TO others",
        "ALTER TABLE run RENAME COLUMN overwrite TO others",
    ],
)
def test_work_files_that_were_forged_are_refused(files, capsys, command):
    out = files / "out" / "verified.h5"
    source = HlocFiles(*inputs_of(files), out, settings="")
    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError):
        verify(source, executor, VerificationOptions(), on_batch=fail)
    source.close()
    execute(f"{out}.partial", command)
    assert main(arguments(files)) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert ("verified.h5.partial" in message and "move it away" in message) or "no such column" in message
    assert not out.exists()


def fail(_):
    raise RuntimeError


@pytest.mark.parametrize("table", ["matches", "two_view_geometries", "images", "cameras"])
def test_tables_of_other_types_are_refused(database, capsys, table):
    first = query(database, f"SELECT name FROM pragma_table_info('{table}')")[0][0]
    columns = [name for (name,) in query(database, f"SELECT name FROM pragma_table_info('{table}')")]
    execute(database, f"ALTER TABLE {table} RENAME TO old")
    execute(database, f"CREATE TABLE {table} ({', '.join(f'{name} TEXT' for name in columns)})")
    execute(database, f"INSERT INTO {table} SELECT * FROM old")
    execute(database, f"UPDATE {table} SET {first} = 'text' WHERE rowid = 1")
    assert main(["verify", str(database)]) in (0, 2, 3)
    assert "Traceback" not in capsys.readouterr().err


HOSTILE_SCHEMAS = {
    "a trigger that deletes": (
        "CREATE TRIGGER t AFTER INSERT ON two_view_geometries BEGIN DELETE FROM matches; DELETE FROM images; END",
    ),
    "a trigger that fills the disk": (
        "CREATE TABLE junk (data)",
        "CREATE TRIGGER t AFTER INSERT ON caransac_geometries BEGIN INSERT INTO junk VALUES (zeroblob(100000000)); END",
    ),
    "a trigger that never ends": (
        "CREATE TABLE numbers (n)",
        "CREATE TRIGGER t AFTER UPDATE ON cameras BEGIN INSERT INTO numbers WITH RECURSIVE up (n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT n FROM up; END",
    ),
    "a trigger instead of writing": (
        "ALTER TABLE two_view_geometries RENAME TO old",
        "CREATE VIEW two_view_geometries AS SELECT * FROM old",
        "CREATE TRIGGER t INSTEAD OF INSERT ON two_view_geometries BEGIN DELETE FROM matches; END",
    ),
    "a view that never ends": (
        "ALTER TABLE matches RENAME TO old",
        "CREATE VIEW matches AS WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up)"
        " SELECT n AS pair_id, 9 AS rows, 2 AS cols, zeroblob(72) AS data FROM up",
    ),
    "a view that is ours by its name": (
        "CREATE VIEW caransac_geometries AS SELECT pair_id, 1 AS settings_id, rows, config, 0 AS outdated FROM matches",
    ),
    "a generated column": ("ALTER TABLE keypoints ADD COLUMN more AS (zeroblob(900000000))",),
    "a generated blob": (
        "ALTER TABLE matches RENAME TO old",
        "CREATE TABLE matches (pair_id INTEGER PRIMARY KEY, rows, cols, data AS (zeroblob(8 * rows)))",
        "INSERT INTO matches SELECT pair_id, 40000000, 2 FROM old",
    ),
    "a computed default": ("ALTER TABLE two_view_geometries ADD COLUMN more DEFAULT (zeroblob(100000000))",),
    "a computed index": ("CREATE INDEX i ON two_view_geometries (zeroblob(100000000 + rows))",),
    "an index with a condition": ("CREATE INDEX i ON two_view_geometries (rows) WHERE hex(zeroblob(500)) > rows",),
    "a virtual table": (
        "ALTER TABLE images RENAME TO old",
        "CREATE VIRTUAL TABLE images USING fts3 (image_id, name, camera_id)",
    ),
    "rows that are there many times": (
        "ALTER TABLE matches RENAME TO old",
        "CREATE TABLE matches (pair_id INTEGER, rows, cols, data)",
        "INSERT INTO matches SELECT 2147483649, 1, 2, zeroblob(8) FROM old, old, old, old",
    ),
}


def add_schema(database, commands):
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA legacy_alter_table = ON")  # keeps triggers and views unchanged
    connection.execute("CREATE TABLE IF NOT EXISTS caransac_settings (settings_id INTEGER PRIMARY KEY, settings)")
    if "VIEW caransac" not in str(commands):
        connection.execute(
            "CREATE TABLE caransac_geometries (pair_id INTEGER PRIMARY KEY, settings_id, rows, config, outdated)"
        )
    for command in commands:
        connection.execute(command)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("what", HOSTILE_SCHEMAS)
def test_schemas_that_compute_are_refused_and_named(database, capsys, what):
    add_schema(database, HOSTILE_SCHEMAS[what])
    before = database.read_bytes()
    with little_memory():
        assert main(["verify", str(database), "--ratio-from-descriptors"]) == 2
    message = capsys.readouterr().err
    named = r"trigger, t,|generated column, \w+\.\w+,|computed default, that of \w+\.more,|computed index, i,"
    places = r"view in the place of the table \w+,|virtual table, images,|primary key of matches is not pair_id"
    assert re.search(rf"database\.db.*(?:{named}|{places})", message), message
    assert database.read_bytes() == before


STEERING = "\x1b]0;title\x07\x1b[2J\r\nVerified 9999 pairs\x9b2J\u202e"


def test_names_in_a_file_do_not_steer_the_terminal(database, capsys):
    execute(database, "UPDATE images SET name = ? WHERE image_id = 1", STEERING)
    execute(database, "UPDATE matches SET rows = 7 WHERE pair_id = ?", pair_id(0))
    assert main(["verify", str(database), "--quiet"]) == 3
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and message[:-1].isprintable()
    assert r"skipped \x1b]0;title\x07\x1b[2J\r\nVerified 9999 pairs\x9b2J\u202e and scene/002.png: " in message
    execute(database, f'CREATE TRIGGER "{STEERING}" AFTER INSERT ON matches BEGIN DELETE FROM images; END')
    assert main(["verify", str(database), "--quiet"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and message[:-1].isprintable()


def test_a_table_named_like_a_pragma_does_not_hide_the_schema(database, capsys):
    execute(database, "CREATE TABLE pragma_table_xinfo (cid, name, type, 'notnull', dflt_value, pk, hidden)")
    add_schema(database, HOSTILE_SCHEMAS["a generated column"])
    assert main(["verify", str(database)]) == 2
    assert "generated column, keypoints.more" in capsys.readouterr().err


def test_constraints_of_the_file_are_not_computed(database):
    text = query(database, "SELECT sql FROM sqlite_master WHERE name = 'two_view_geometries'")[0][0]
    execute(database, "DROP TABLE two_view_geometries")
    execute(database, f"{text[:-1]}, CHECK (length(hex(zeroblob(400000000))) = 0))")
    with little_memory():
        assert main(["verify", str(database)]) == 0
    assert len(read_geometries(database)) == 6


def test_pages_that_are_in_a_table_many_times_are_refused(tmp_path, capsys):
    path = make_database(tmp_path / "database.db", some_pairs(2, num_points=20))
    fill = "WITH RECURSIVE up (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM up WHERE n < 4000)"
    execute(path, f"INSERT INTO images {fill} SELECT n, 'image ' || n, 1 FROM up")
    (root,), (size,) = (
        query(path, command)[0]
        for command in ("SELECT rootpage FROM sqlite_master WHERE name = 'images'", "PRAGMA page_size")
    )
    data = bytearray(path.read_bytes())
    page = (root - 1) * size
    assert data[page] == 5, "an inner page of the table"
    cells = int.from_bytes(data[page + 3 : page + 5], "big")
    places = [int.from_bytes(data[page + 12 + 2 * i : page + 14 + 2 * i], "big") for i in range(cells)]
    first = data[page + places[0] : page + places[0] + 4]
    for place in places[1:]:
        data[page + place : page + place + 4] = first  # every pointer leads to the first page
    path.write_bytes(data)
    assert main(["verify", str(path)]) == 2
    assert "database.db is not a COLMAP database, or it is corrupt (row " in capsys.readouterr().err


@pytest.mark.parametrize("table", ["matches", "keypoints", "descriptors"])
def test_blobs_are_measured_before_they_are_read(database, capsys, monkeypatch, table):
    key = "pair_id" if table == "matches" else "image_id"
    first = pair_id(0) if table == "matches" else 1
    for image in range(1, 13):
        execute(database, "INSERT INTO descriptors VALUES (?, 0, 200, 128, zeroblob(25600))", image)
    execute(database, f"UPDATE {table} SET data = zeroblob(50000000) WHERE {key} = ?", first)
    read = []
    monkeypatch.setattr(colmap, "read_blob", lambda *given: read.append(given) or read_blob(*given))
    with little_memory(40):
        assert main(["verify", str(database), "--ratio-from-descriptors", "--workers", "1"]) == 3
    assert read and re.search(r"skipped scene/001.png.*50000000 bytes of blob for 200 rows", capsys.readouterr().err)
    assert len(read_geometries(database)) == 5


def test_parameters_of_cameras_are_measured_before_they_are_read(database, capsys):
    execute(database, "UPDATE cameras SET params = zeroblob(50000000) WHERE camera_id = 3")
    with little_memory(40):
        assert main(["verify", str(database)]) == 3
    assert "skipped scene/003.png and scene/004.png: " in (err := capsys.readouterr().err) and "corrupt camera 3" in err


def test_settings_are_in_memory_once(database):
    assert main(["verify", str(database)]) == 0
    execute(database, "UPDATE caransac_settings SET settings = settings || hex(zeroblob(10000000))")
    with little_memory(80):
        source = ColmapDatabase(database)
        assert len(source.kept) == 6
        source.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("guarded", [True, False])
def test_ctrl_c_ends_a_query_that_takes_for_ever(database, guarded):
    program = f"""
import os, pathlib, signal, sys, threading
from caransac._support.interrupts import InterruptGuard, InterruptRequest
from caransac._support.sqlite_files import connect, explaining, transaction
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
path = pathlib.Path(sys.argv[1])
endless = "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) INSERT INTO junk SELECT max(n) FROM up"
connection = connect(path)
begun = threading.Event()
connection.create_function("begin", 0, begun.set)
threading.Thread(target=lambda: begun.wait() and os.kill(os.getpid(), signal.SIGINT), daemon=True).start()
connection.execute("CREATE TABLE junk (n)")
guard = InterruptGuard("message", active={guarded})
with guard:
    guard.begin("")
    try:
        with explaining(path, ""), transaction(connection):
            connection.execute(endless.replace("SELECT 1", "SELECT ifnull(begin(), 1)"))
    except KeyboardInterrupt as error:
        print(type(error).__name__, connection.in_transaction, *connection.execute("SELECT count(*) FROM junk"))
"""
    done = subprocess.run([sys.executable, "-c", program, database], capture_output=True, text=True, timeout=120)
    assert done.stdout == f"{'InterruptRequest' if guarded else 'KeyboardInterrupt'} False (0,)\n", done.stderr

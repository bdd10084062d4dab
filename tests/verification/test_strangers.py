"""Databases and files of hloc that somebody made with bad intentions."""

import sys
from concurrent.futures import ThreadPoolExecutor

import h5py
import pytest
from bombs import ELSEWHERE, little_memory, write_secrets
from databases import execute, pair_id, query, read_geometries
from hloc_files import arguments, group, inputs_of, put

from caransac.cli import main
from caransac.verification import HlocFiles, VerificationOptions, verify


@pytest.mark.parametrize("make", ELSEWHERE)
def test_other_files_are_no_matches_of_hloc(files, make, capsys):
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


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs sqlite3.Connection.setlimit")
def test_blobs_that_are_computed_have_a_limit(database, capsys, monkeypatch):
    rows = query(database, "SELECT pair_id, rows FROM matches")
    execute(database, "DROP TABLE matches")
    computed = f"CASE pair_id WHEN {pair_id(1)} THEN zeroblob(300000000) ELSE zeroblob(8 * rows) END"
    execute(database, f"CREATE TABLE matches (pair_id INTEGER PRIMARY KEY, rows, cols, data AS ({computed}))")
    for row in rows:
        execute(database, "INSERT INTO matches VALUES (?, ?, 2)", *row)
    monkeypatch.setenv("CARANSAC_MAX_FILE_BYTES", "200000000")
    with little_memory():
        assert main(["verify", str(database)]) == 3
    assert "skipped scene/003.png and scene/004.png: " in capsys.readouterr().err
    assert len(read_geometries(database)) == 5

"""Databases and files of hloc that somebody made with bad intentions."""

import sys

import h5py
import pytest
from bombs import ELSEWHERE, little_memory, write_secrets
from databases import execute, pair_id, query, read_geometries
from hloc_files import arguments, group, put

from caransac.cli import main


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

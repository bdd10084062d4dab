"""Error messages of ``caransac verify``: each names the file and a remedy."""

import os
import re
import sqlite3
import subprocess
import sys

import h5py
import numpy as np
import pytest
from databases import execute, make_database, pair_id, read_geometries, some_pairs

from caransac.cli import main
from caransac.verification import ColmapDatabase, open_executor


@pytest.fixture
def database(tmp_path):
    return make_database(tmp_path / "database.db", some_pairs(1))


@pytest.fixture
def fails(capsys):
    def check(arguments, *expected):
        assert main(["verify", "--strict", *map(str, arguments)]) == 2
        message = capsys.readouterr().err
        assert message.startswith("caransac: ")
        for pattern in expected:
            assert re.search(pattern, message), message

    return check


def test_missing_files(tmp_path, fails):
    fails([tmp_path / "no.db"], r"no such database: .*no\.db")
    assert not (tmp_path / "no.db").exists()
    fails([tmp_path], "not a file")
    fails([], "DATABASE.db, or all of --features")
    fails(["--features", "a.h5", "--matches", "b.h5"], "--pairs")


def test_files_that_are_not_databases(tmp_path, fails):
    path = tmp_path / "database.db"
    path.write_bytes(b"no database at all, but long enough to look" * 100)
    fails([path], "not a COLMAP database")
    path.unlink()
    execute(path, "CREATE TABLE images (name TEXT)")
    fails([path], "no table 'cameras'", "feature extraction and matching")
    path.write_bytes(b"")
    fails([path], "no table")


def test_corrupt_databases(database, fails):
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    fails([database], "corrupt|not a COLMAP database")
    database.write_bytes(whole)
    execute(database, "UPDATE matches SET data = x'00112233'")
    fails([database], "corrupt matches", "match again")


def test_locked_databases(database):
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(OSError, match="is locked: another program is writing to it"):
            ColmapDatabase(database, lock_timeout_s=0.1)
    finally:
        holder.close()


def test_read_only_databases(database, fails, monkeypatch):
    # Simulated, because root ignores file modes.
    monkeypatch.setattr(os, "access", lambda path, _: path != database.parent)
    fails([database], "cannot be written to", "copy the database elsewhere")
    monkeypatch.undo()
    source = ColmapDatabase(database)
    source._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(PermissionError, match="copy the database elsewhere"):
        source.write([])
    source.close()


def test_empty_matches(database, fails):
    execute(database, "DELETE FROM matches")
    fails([database], "no matches: run feature matching first")


def test_matches_past_the_keypoints(database, fails):
    execute(database, "UPDATE keypoints SET rows = 5, data = zeroblob(80) WHERE image_id = 2")
    fails([database], r"scene/002.png has 5.*match again")
    execute(database, "DELETE FROM keypoints")
    fails([database], "has 0", "match again")
    assert read_geometries(database) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_keypoints_that_are_not_finite(database, fails, value):
    points = np.full((200, 2), value, np.float32)
    execute(database, "UPDATE keypoints SET rows = 200, cols = 2, data = ? WHERE image_id = 2", points)
    fails([database], r"database\.db: NaN, infinity or vast numbers in the keypoints of scene/002.png")


@pytest.mark.parametrize("value", ["'text'", "7", "x'00'"])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("matches SET data", "corrupt matches of pair .*: match again"),
        ("keypoints SET data", r"corrupt keypoints of scene/00\d.png: extract features again"),
        ("cameras SET params", "corrupt camera 1: extract features again"),
    ],
)
def test_columns_of_other_types(database, fails, column, message, value):
    execute(database, f"UPDATE {column} = {value}")
    fails([database], message)
    assert read_geometries(database) == []


def test_keypoints_without_a_place(database, fails):
    execute(database, "UPDATE keypoints SET cols = 1, rows = 4 * rows")
    fails([database], "corrupt keypoints of")
    execute(database, "UPDATE keypoints SET rows = 'many'")
    fails([database], "corrupt keypoints of")


def test_reports_that_cannot_be_written_are_refused_at_once(database, tmp_path, fails):
    (tmp_path / "file").touch()
    fails([database, "--report", tmp_path / "file" / "pairs.csv"], "it is a file", "choose another place")
    assert read_geometries(database) == []


def test_pairs_of_images_that_are_gone(database, fails):
    execute(database, "UPDATE matches SET pair_id = ?", pair_id(7))
    fails([database], "image 15 is not there")


def test_unknown_camera_models(database, fails):
    execute(database, "UPDATE cameras SET model = 17")
    fails([database], "EQUIRECTANGULAR", "it is panoramic", "--calibrated never")
    execute(database, "UPDATE cameras SET model = 'PINHOLE'")
    fails([database], "number PINHOLE")
    execute(database, "UPDATE cameras SET model = 99")
    fails([database], "number 99")
    assert main(["verify", str(database), "--calibrated", "never"]) == 0


def test_descriptors_that_are_missing_or_foreign(database, fails):
    fails([database, "--ratio-from-descriptors"], "lacks descriptors")
    for image in (1, 2):
        execute(database, "INSERT INTO descriptors VALUES (?, 1, 200, 128, zeroblob(25600))", image)
    fails([database, "--ratio-from-descriptors"], "not SIFT")


def test_impossible_options(database, fails, tmp_path):
    fails([database, "--min-confidence", "2"], "min_confidence")
    fails([database, "--min-confidence", "0.5", "--method", "lm-lo"], "min_confidence needs method 'ca-ransac'")
    fails([database, "--workers", "0"], "workers must be a whole number of at least 1")
    fails([database, "--max-error", "-1"], "max_error_px")
    fails([database, "--report", tmp_path / "report.xlsx"], r"\.csv or \.parquet")
    fails([database, "--features", "f.h5"], "not both")
    with pytest.raises(ValueError, match="calibrated"):
        ColmapDatabase(database, calibrated="perhaps")
    assert read_geometries(database) == []


def test_a_scheduler_that_does_not_answer():
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(OSError, match="no Dask scheduler answers at tcp://127"),
        open_executor(scheduler="tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("h5py", ["--features", "f.h5", "--matches", "m.h5", "--pairs", "p.txt"], "hloc"),
        ("pyarrow", ["database.db", "--report", "report.parquet"], "reports"),
        ("distributed", ["database.db", "--scheduler", "tcp://127.0.0.1:9"], "cluster"),
    ],
)
def test_missing_extras(database, module, arguments, extra):
    folder = database.parent
    (folder / "p.txt").write_text("a b\n")
    for name in ("f.h5", "m.h5"):
        h5py.File(folder / name, "w").close()
    program = f"import sys; sys.modules[{module!r}] = None; from caransac.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "verify", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 2 and f"pip install 'caransac[{extra}]'" in done.stderr


@pytest.mark.slow
def test_it_needs_only_numpy(database):
    program = (
        "import sys\n"
        "for name in ('rich', 'h5py', 'pyarrow', 'distributed', 'pycolmap', 'torch', 'cv2'): sys.modules[name] = None\n"
        "from caransac.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "verify", str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1 calibrated" in done.stdout


@pytest.mark.slow
def test_the_help_has_examples():
    command = [sys.executable, "-m", "caransac", "verify", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "caransac verify database.db" in shown and "skip_geometric_verification" in shown
    assert max(map(len, shown.splitlines())) <= 80

"""Runs over all pairs: in any order, cut off and continued, they end with the same database."""

import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from calls import Deadly
from databases import execute, make_database, query, read_geometries, some_pairs, verify_database

from caransac.verification import ColmapDatabase, VerificationOptions, open_executor, verify

PAIRS = some_pairs(6)  # of the fixture `database`


def test_workers_batches_and_order_change_nothing(database, tmp_path):
    expected = verify_database(database, workers=1)
    rows = read_geometries(database)
    other = shutil.copyfile(database, tmp_path / "other.db")
    execute(other, "DELETE FROM two_view_geometries WHERE pair_id % 2 = 0")
    source = ColmapDatabase(other)
    source.batch_size, source.pending = 1, list(source.pending)[::-1]
    with ThreadPoolExecutor(4) as executor:
        verify(source, executor, VerificationOptions())
    source.close()
    assert read_geometries(other) == rows
    assert [g.num_matches for g in expected] == [200] * len(PAIRS)


def test_an_error_keeps_what_is_done(database):
    execute(database, "UPDATE keypoints SET rows = 0, data = x'' WHERE image_id = ?", 2 * len(PAIRS))
    source = ColmapDatabase(database)
    source.batch_size = 1
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="match again"):
        verify(source, executor, VerificationOptions(), in_flight=1)
    source.close()
    assert len(read_geometries(database)) == len(PAIRS) - 1


KILLED = """
import os, signal, sys
from caransac.cli import main
from caransac.verification import ColmapDatabase

write, batches = ColmapDatabase.write, []

def write_once(self, found):
    batches.append(found)
    if len(batches) > 1:
        os.kill(os.getpid(), int(sys.argv[1]))
    write(self, found)

if __name__ == "__main__":
    ColmapDatabase.write = write_once
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_continues_to_the_same_database(tmp_path, kill):
    whole = make_database(tmp_path / "whole.db", some_pairs(112, num_points=150))
    cut = shutil.copyfile(whole, tmp_path / "cut.db")
    verify_database(whole)
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, tmp_path / "killed.py", str(int(kill)), "verify", str(cut), "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = process.communicate(timeout=120)[1]  # returns when the workers are gone too: they hold the pipes
    assert query(cut, "PRAGMA integrity_check") == [("ok",)]
    done = len(read_geometries(cut))
    assert 0 < done < 112
    if kill == signal.SIGINT:
        assert process.returncode == 130 and f"{done} of 112 pairs are done; the same command continues" in errors
    assert len(verify_database(cut)) == 112 - done
    assert read_geometries(cut) == read_geometries(whole)


def test_a_worker_that_dies_is_an_error(database):
    source = ColmapDatabase(database)
    source.read = lambda _: Deadly()
    with (
        pytest.raises(OSError, match="a worker died"),
        open_executor(2) as (executor, in_flight),
    ):
        verify(source, executor, VerificationOptions(), in_flight=in_flight)
    source.close()

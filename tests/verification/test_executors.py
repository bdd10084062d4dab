"""Runs over all pairs: in any order, cut off and continued, they end with the same database."""

import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from calls import Deadly
from databases import execute, make_database, query, read_geometries, some_pairs, verify_database

from caransac._support import interrupts
from caransac.cli import main
from caransac.verification import ColmapDatabase, VerificationOptions, choose_workers, open_executor, verify

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
        os.kill(os.getpid(), kill)
    write(self, found)

if __name__ == "__main__":
    ColmapDatabase.write = write_once
    kill = int(sys.argv.pop(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    sys.exit(main())
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
        assert process.returncode == 130
        assert errors == f"caransac: interrupted; {done} of 112 pairs are done; the same command continues\n"
    assert len(verify_database(cut)) == 112 - done
    assert read_geometries(cut) == read_geometries(whole)


def test_a_killed_overwrite_keeps_every_geometry(tmp_path):
    path = make_database(tmp_path / "database.db", some_pairs(40, num_points=150))
    command = ["verify", str(path), "--workers", "1"]
    assert main([*command, "--seed", "5"]) == 0
    before = read_geometries(path)
    (tmp_path / "killed.py").write_text(KILLED)
    killed = [sys.executable, tmp_path / "killed.py", str(int(signal.SIGKILL)), *command, "--overwrite"]
    assert subprocess.run(killed, capture_output=True, check=False).returncode == -signal.SIGKILL
    between = read_geometries(path)
    assert main([*command, "--overwrite"]) == 0
    after = read_geometries(path)
    assert [row[0] for row in between] == [row[0] for row in before] == [row[0] for row in after]
    done = [row in after for row in between]
    assert 0 < sum(done) < 40
    assert all(old or row in before for old, row in zip(done, between, strict=True))


def test_a_worker_that_dies_is_an_error(database):
    source = ColmapDatabase(database)
    source.read = lambda _: Deadly()
    with (
        pytest.raises(OSError, match="a worker died"),
        open_executor(2) as (executor, in_flight),
    ):
        verify(source, executor, VerificationOptions(), in_flight=in_flight)
    source.close()


@pytest.mark.parametrize(("most", "pairs", "workers"), [(8, 0, 1), (8, 63, 1), (8, 64, 2), (8, 1000, 8), (1, 1000, 1)])
def test_there_is_a_worker_for_every_32_pairs(most, pairs, workers):
    assert choose_workers(most, pairs) == workers


def test_a_small_job_starts_no_process(database, monkeypatch):
    monkeypatch.setattr("caransac.verification.executors.ProcessPool", None)
    assert main(["verify", str(database), "--workers", "8"]) == 0
    assert len(read_geometries(database)) == len(PAIRS)


def test_a_request_to_stop_ends_a_thread_between_two_pairs(database, monkeypatch):
    """All six pairs are one batch, which is not written; the estimate that runs is the last one."""
    verified = []

    def verify_and_interrupt(pair, _):
        verified.append(pair.key)
        monkeypatch.setattr(interrupts, "_requested", True)

    monkeypatch.setattr(interrupts, "_obeyed", False)
    monkeypatch.setattr("caransac.verification.pair_verification.verify_pair", verify_and_interrupt)
    assert main(["verify", str(database)]) == 130
    assert len(verified) == 1 and read_geometries(database) == []

"""Runs over all pairs in any order, also interrupted and resumed, give the same database."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from calls import Deadly
from databases import (
    execute,
    make_collection,
    make_database,
    pair_id,
    query,
    read_geometries,
    some_pairs,
    verify_database,
)

from caransac._support import interrupts
from caransac.cli import main
from caransac.verification import (
    BadPairError,
    ColmapDatabase,
    VerificationOptions,
    choose_workers,
    open_executor,
    verify,
)
from caransac.verification.colmap import MAX_IMAGES

pytestmark = pytest.mark.slow

PAIRS = some_pairs(6)  # the pairs in the fixture `database`


def test_results_do_not_depend_on_workers_batches_and_order(database, tmp_path):
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


def test_an_error_keeps_finished_pairs(database):
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
    # Returns when the workers have ended, too, because they keep the pipes open.
    errors = process.communicate(timeout=120)[1]
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


def verify_with_deadly_pairs(database, tmp_path, deadly, *, lives, collected=True):
    """Verify in processes while some pairs kill the first workers that read them. Return the skipped pairs."""
    lives_file = tmp_path / "lives"
    lives_file.write_text(str(lives))
    source, skipped = ColmapDatabase(database), []
    read = source.read
    source.read = lambda key: Deadly.of(read(key), lives_file) if key in deadly else read(key)
    try:
        with open_executor(2) as (executor, in_flight):
            verify(
                source,
                executor,
                VerificationOptions(),
                in_flight=in_flight,
                on_skipped=skipped.append if collected else None,
            )
    finally:
        source.close()
    return skipped


def test_a_killed_worker_is_replaced_and_its_pairs_are_verified(database, tmp_path):
    other = shutil.copyfile(database, tmp_path / "other.db")
    assert verify_with_deadly_pairs(database, tmp_path, {pair_id(2)}, lives=1) == []
    verify_database(other)
    assert read_geometries(database) == read_geometries(other)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs os.waitid to detect stopped processes")
def test_a_stopped_worker_is_replaced_and_reported(database, tmp_path, monkeypatch):
    monkeypatch.setattr("caransac._support.processes.STOPPED_S", 0.3)
    other = shutil.copyfile(database, tmp_path / "other.db")
    source, told = ColmapDatabase(database), []
    with open_executor(2) as (executor, in_flight):
        os.kill(executor.submit(os.getpid).result(), signal.SIGSTOP)
        source.batch_size = 1
        verify(source, executor, VerificationOptions(), in_flight=in_flight, on_lost_worker=told.append)
    source.close()
    assert told == ["a worker process was stopped for 0.3 s, and was killed"]
    verify_database(other)
    assert read_geometries(database) == read_geometries(other)


def test_a_pair_that_kills_workers_twice_is_skipped_and_named(database, tmp_path):
    (skipped,) = verify_with_deadly_pairs(database, tmp_path, {pair_id(2)}, lives=5)
    assert skipped.names == ("scene/005.png", "scene/006.png") and "died twice" in str(skipped)
    assert [row[0] for row in read_geometries(database)] == [pair_id(i) for i in (0, 1, 3, 4, 5)]
    with pytest.raises(BadPairError, match="died twice"):
        verify_with_deadly_pairs(database, tmp_path, {pair_id(2)}, lives=5, collected=False)


def test_workers_that_keep_dying_are_an_error(database, tmp_path, monkeypatch):
    monkeypatch.setattr("caransac.verification.executors.MOST_DEATHS", 3)
    all_of_them = {pair_id(i) for i in range(6)}
    with pytest.raises(OSError, match="workers keep dying, perhaps out of memory: continue with fewer --workers"):
        verify_with_deadly_pairs(database, tmp_path, all_of_them, lives=5)


def test_pairs_that_kill_workers_do_not_affect_focal_lengths(tmp_path):
    path, _ = make_collection(tmp_path / "database.db")
    deadly = {MAX_IMAGES + 2}
    (skipped,) = verify_with_deadly_pairs(path, tmp_path, deadly, lives=5)
    assert skipped.names == ("01.png", "02.png")
    source = ColmapDatabase(path)
    assert source.pending == [MAX_IMAGES + 2]
    source.close()


@pytest.mark.parametrize(("most", "pairs", "workers"), [(8, 0, 1), (8, 63, 1), (8, 64, 2), (8, 1000, 8), (1, 1000, 1)])
def test_there_is_a_worker_for_every_32_pairs(most, pairs, workers):
    assert choose_workers(most, pairs) == workers


def test_a_small_job_starts_no_process(database, monkeypatch):
    monkeypatch.setattr("caransac.verification.executors.ProcessPool", None)
    assert main(["verify", str(database), "--workers", "8"]) == 0
    assert len(read_geometries(database)) == len(PAIRS)


def test_a_request_to_stop_ends_a_thread_between_two_pairs(database, monkeypatch):
    """All six pairs are one batch, which is not written. The running estimate finishes, and no other one starts."""
    verified = []

    def verify_and_interrupt(pair, _):
        verified.append(pair.key)
        monkeypatch.setattr(interrupts, "_requested", True)

    monkeypatch.setattr(interrupts, "_obeyed", False)
    monkeypatch.setattr("caransac.verification.pair_verification.verify_pair", verify_and_interrupt)
    assert main(["verify", str(database)]) == 130
    assert len(verified) == 1 and read_geometries(database) == []

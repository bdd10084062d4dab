"""Runs that crash, hang, are interrupted or are killed affect no other run and lose no outcome."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from caransac_lab.bench import runner
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.filters import BenchFilter
from caransac_lab.bench.journal import Journal
from caransac_lab.bench.plan import Plan
from caransac_lab.bench.protocol import BenchMethod, Job
from caransac_lab.bench.publication import collect_results
from caransac_lab.datasets import open_dataset

pytestmark = pytest.mark.slow


class CountingObserver:
    """An observer that counts outcomes and may raise an interrupt."""

    def __init__(self, interrupt_after=None):
        self.count, self.interrupt_after = 0, interrupt_after

    def begin_stage(self, stage, total):
        pass

    def add_outcome(self, *_):
        self.count += 1
        if self.count == self.interrupt_after:
            raise KeyboardInterrupt


def accuracy(rows, plan):
    """Return the entries that must be identical in repeated runs."""
    result = collect_results(plan, rows, {}, "")
    return [{name: value for name, value in row.items() if name not in ("ms", "parts_ms")} for row in result["rows"]]


def die(pair):
    """A filter that ends its process for some pairs."""
    if pair.name.endswith("1"):
        os._exit(3)
    return np.ones(len(pair.points1))


def test_a_crashing_peer_affects_no_other(tmp_path, run_plan):
    plan = Plan(sources=("synthetic:3",), methods=("LM-LO",), filters=(BenchFilter("deadly", die),), timing_pairs=0)
    plain, deadly = run_plan(plan, tmp_path)
    assert plain.method.label == "LM-LO"
    assert [outcome.status for outcome in plain.outcomes[0].values()] == ["found"] * 3
    assert [outcome.status for outcome in deadly.outcomes[0].values()] == ["found", "crashed", "found"]


def hang(pair):
    """A filter that hangs for some pairs."""
    if pair.name.endswith("1"):
        time.sleep(1000)
    return np.ones(len(pair.points1))


def test_a_hanging_peer_is_stopped(tmp_path):
    method, outcomes = BenchMethod("LM-LO", BenchFilter("slow", hang), "slow + LM-LO"), {}
    with Journal(tmp_path / "journal.jsonl", {}) as journal:
        runner.run(
            open_dataset("synthetic:3", None),
            [Job(method, "E", RunSettings(iterations=64))],
            journal,
            workers=1,
            on_outcome=lambda key, outcome: outcomes.update({key[2]: outcome.status}),
            time_limit_s=5.0,  # much longer than other runs take, even on a busy machine
        )
    assert [outcomes[name] for name in sorted(outcomes)] == ["found", "crashed", "found"]


def test_interrupted_runs_continue_to_the_same_digits(tmp_path, run_plan):
    methods = ("LM-LO", "OpenCV USAC_DEFAULT", "CA-RANSAC")
    plan = Plan(sources=("synthetic:4",), methods=methods, iterations=128, seeds=2, timing_pairs=1)
    whole = run_plan(plan, tmp_path / "whole", workers=2)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "halves", CountingObserver(interrupt_after=7))
    path = tmp_path / "halves" / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 8
    path.write_text("".join(lines[:-1]) + lines[-1][:40])  # killed in the middle of a line
    observer = CountingObserver()
    continued = run_plan(plan, tmp_path / "halves", observer)
    assert accuracy(continued, plan) == accuracy(whole, plan)
    assert observer.count == 4 * 3 * 2 + 3
    before = path.read_text()
    assert accuracy(run_plan(plan, tmp_path / "halves"), plan) == accuracy(whole, plan)
    assert path.read_text() == before


def test_results_of_other_versions_are_not_mixed(tmp_path):
    path = tmp_path / "out" / "journal.jsonl"
    Journal(path, {"versions": {"numpy": "1", "poselib": "2"}, "commit": "a"}).close()
    Journal(path, {"versions": {"numpy": "1", "torch": "3"}, "commit": "a"}).close()
    with pytest.raises(ValueError, match="another numpy"):
        Journal(path, {"versions": {"numpy": "2"}, "commit": "a"})
    with pytest.raises(ValueError, match="another commit"):
        Journal(path, {"versions": {"numpy": "1"}, "commit": "b"})


@pytest.mark.parametrize("content", [b"garbage\n", b"[1, 2]\n", b"\xff\xfe\n", b'{}\n{"a": 1}\n'])
def test_a_file_that_is_no_journal_is_named(tmp_path, content):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"journal.jsonl is not a journal of this benchmark: remove it"):
        Journal(path, {})
    assert path.read_bytes() == content


def wait_until_gone(group):
    """Wait for the last process of a group to end, because workers must not outlive their parent process."""
    for _ in range(6000):  # two minutes, reached only if the test fails
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("workers still run after the run was killed")


def test_a_killed_command_resumes(tmp_path):
    command = [sys.executable, "-m", "caransac_lab", "bench", "synthetic:40", "--methods", "LM-LO", "CA-RANSAC"]
    command += ["--workers", "1", "--timing-pairs", "0", "--out", str(tmp_path / "out")]
    journal = tmp_path / "out" / "journal.jsonl"
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while not journal.exists() or journal.read_text().count("\n") < 3:
        assert running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.wait()
    wait_until_gone(running.pid)
    kept = journal.read_text().rpartition("\n")[0]
    assert kept.count("\n") < 80
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert journal.read_text().startswith(kept)
    assert journal.read_text().count("\n") == 81
    (row,) = {each["pairs"] for each in json.loads((tmp_path / "out" / "results.json").read_text())["rows"]}
    assert row == 40

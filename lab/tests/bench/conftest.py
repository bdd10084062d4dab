"""Fixtures of the benchmark tests."""

import pytest

from caransac_lab.bench.benchmark import Benchmark
from caransac_lab.bench.journal import Journal


class SilentObserver:
    """An observer that ignores everything."""

    def begin_stage(self, stage, total):
        pass

    def add_outcome(self, key, outcome):
        pass


@pytest.fixture
def run_plan():
    """Run a plan with a journal in a folder, and return its rows."""

    def run(plan, folder, observer=None, workers=1):
        with Journal(folder / "journal.jsonl", {"versions": {}}) as journal:
            return Benchmark(plan, journal, observer or SilentObserver(), workers).run()

    return run

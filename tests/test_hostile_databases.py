"""The table of hostile databases: some of them, by the command that makes it."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read where Linux has it"),
]


def test_hostile_databases_are_refused_or_their_pairs_skipped(tmp_path, monkeypatch):
    for name in ("poselib", "pycolmap"):
        pytest.importorskip(name)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = importlib.import_module("hostile_databases")
    monkeypatch.setattr(sys, "argv", ["hostile_databases.py", "--quick", "--out", str(tmp_path / "out.json")])
    assert script.main() == 0
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert rows["nothing"]["exit"] == 0 and rows["nothing"]["verified"] == script.PAIRS
    refused = rows["a trigger that deletes everything"]
    assert refused["exit"] == 2 and refused["intact"] and "trigger, t," in refused["said"]
    assert all(row["megabytes"] < rows["nothing"]["megabytes"] + 30 for row in rows.values())


def test_a_run_that_loses_data_is_told(monkeypatch):
    pytest.importorskip("pycolmap")
    pytest.importorskip("poselib")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = importlib.import_module("hostile_databases")
    good = {"exit": 2, "said": "", "intact": True}
    assert not script.is_bad(good)
    for other in ({"exit": -9}, {"exit": "hung"}, {"intact": False}, {"said": "Traceback: ZeroDivisionError"}):
        assert script.is_bad(good | other)

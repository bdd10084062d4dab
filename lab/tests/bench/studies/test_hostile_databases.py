"""The table of malicious databases: the command of the study verifies a few of them."""

import importlib
import json
import sys

import pytest

from caransac_lab.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc of Linux"),
]


def test_hostile_databases_are_refused_or_their_pairs_skipped(tmp_path):
    for name in ("poselib", "pycolmap"):
        pytest.importorskip(name)
    script = importlib.import_module("caransac_lab.bench.studies.hostile_databases")
    assert main(["study", "hostile_databases", "--quick", "--out", str(tmp_path / "out.json")]) == 0
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert rows["nothing"]["exit"] == 0 and rows["nothing"]["verified"] == script.PAIRS
    refused = rows["a trigger that deletes everything"]
    assert refused["exit"] == 2 and refused["intact"] and "trigger, t," in refused["said"]
    assert all(row["megabytes"] < rows["nothing"]["megabytes"] + 30 for row in rows.values())


def test_a_run_that_loses_data_is_reported():
    pytest.importorskip("pycolmap")
    pytest.importorskip("poselib")
    script = importlib.import_module("caransac_lab.bench.studies.hostile_databases")
    good = {"exit": 2, "said": "", "intact": True}
    assert not script.is_bad(good)
    for other in ({"exit": -9}, {"exit": "hung"}, {"intact": False}, {"said": "Traceback: ZeroDivisionError"}):
        assert script.is_bad(good | other)

"""The speed benchmark: leaders at each time, settings of the peers, and the tables of a small run."""

import importlib
import json
import subprocess
import sys

import pytest

from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.datasets import make_synthetic, write_npz

pytestmark = pytest.mark.slow


@pytest.fixture
def speed():
    pytest.importorskip("poselib")
    known = dict(ESTIMATORS)
    yield importlib.import_module("caransac_lab.bench.studies.speed")
    for name in set(ESTIMATORS) - set(known):
        del ESTIMATORS[name]


def row(method, ms, auc5):
    return {"method": method, "ms": ms, "AUC5": auc5, "AUC1": auc5 / 2}


def test_the_lead_is_over_the_best_peer_that_is_as_fast(speed):
    rows = [row("LM-LO 64", 2, 80), row("CA-RANSAC", 8, 90), row("PoseLib", 4, 85), row("COLMAP", 60, 88)]
    lines = {line.split(" | ")[0]: line for line in speed.lead_table(rows).splitlines()}
    assert lines["| 1"].count("|  |") > 0
    assert "LM-LO 64 80.0 |  |" in lines["| 3"]
    assert "LM-LO 64 80.0 | PoseLib 85.0 | -5.0" in lines["| 5"]
    assert "CA-RANSAC 90.0 | PoseLib 85.0 | +5.0" in lines["| 50"]
    assert "CA-RANSAC 45.0 | COLMAP 44.0 | +1.0" in lines["| 100"]


def test_times_are_shown_by_the_number_of_matches(speed, monkeypatch):
    monkeypatch.setattr(speed, "COUNTS", (60, 120))
    monkeypatch.setattr(speed, "make_jobs", lambda problem, make=speed.make_jobs: make(problem)[2:3])
    found = speed.run_counts(quick=True)
    assert found["E"].keys() == {"LM-LO"} and found["E"]["LM-LO"].keys() == {"60", "120"}
    assert all(ms > 0 for ms in found["E"]["LM-LO"].values())
    header, _, row = speed.counts_text({"E": {"LM-LO": {"60": 0.51, "120": 2.04}}}).splitlines()[2:]
    assert (header, row) == ("|  | 60 matches, ms | 120 matches, ms |", "| LM-LO | 0.5 | 2.0 |")


def test_every_method_stops_according_to_its_label(speed):
    jobs = {job.method.label: job for job in speed.make_jobs("E")}
    assert jobs["PoseLib"].settings.limits == (None, 10_000)
    assert jobs["PoseLib PROSAC 1024"].settings.limits == (1024, 1024)
    told = jobs["OpenCV USAC_DEFAULT 1024"].settings
    assert (told.limits, told.success_probability) == ((None, 1024), 0.99999)
    assert jobs["CA-RANSAC"].settings.iterations is None
    assert jobs["CA-RANSAC"].method.filter is None
    assert jobs["PoseLib"].method.filter is not None
    assert {job.method.label for job in speed.make_jobs("F")} == {label for pair in speed.RATIOS for label in pair}


def test_accuracy_and_time_come_from_the_same_run(speed):
    pair = next(make_synthetic(1))
    for problem, limit in (("E", 5), ("F", 30)):
        for job in speed.make_jobs(problem):
            if job.method.label in ("CA-RANSAC", speed.RATIOS[2][1]):
                error, ms = speed.run_timed(job, pair)
                assert error < limit, job.method.label
                assert 0.1 < ms < 5000


def test_some_parts_are_measured(tmp_path):
    pytest.importorskip("poselib")
    folder, pair = tmp_path / "made" / "val", next(make_synthetic(1))
    (folder / pair.scene).mkdir(parents=True)
    write_npz(folder, pair)
    out = tmp_path / "speed.json"
    command = [
        sys.executable,
        "-m",
        "caransac_lab",
        "study",
        "speed",
        "--quick",
        "--out",
        out,
        "--only",
        "parts",
        "kernels",
    ]
    done = subprocess.run([*command, "--data", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content, text = json.loads(out.read_text()), out.with_suffix(".md").read_text()
    assert [each["method"] for each in content["parts"]["parts"]] == ["CA-RANSAC", "CA-RANSAC 4x256"]
    default, full = (each["parts_ms"] for each in content["parts"]["parts"])
    assert full["solve"] > default["solve"] > 0
    assert default["other"] < 0.5 * sum(default.values())
    assert list(content["parts"]) == ["parts", "kernels"]
    assert str(tmp_path) not in text
    assert "--data" in text and "made/val" in text
    assert all(each["speed"] > 0 for each in content["parts"]["kernels"])

"""From rendered images to a reconstruction: COLMAP's mapper on pairs that caransac verified."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def run(tmp_path, study, *arguments):
    """Run a study on small images. Return the content of its file."""
    out = tmp_path / "result.json"
    command = [sys.executable, "-m", "caransac_lab", "study", study, "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def test_the_mapper_finds_all_cameras(tmp_path):
    rows = run(tmp_path, "reconstruction", "--quick")["scenes"]["boxes"]["rows"]
    assert len(rows) == 4
    for row in rows.values():
        assert row["registered"] == 5
        assert row["worst_pose_error_deg"] < 0.5
        assert row["points"] > 100
        assert row["verification_s"] > 0
    assert "| caransac, 4 px | 5 |" in (tmp_path / "result.md").read_text()


def test_the_focal_length_is_found_before_mapping(tmp_path):
    small = ("--width", "320", "--workers", "2", "--views", "6", "--scenes", "1")
    (rows,) = run(tmp_path, "focal_pooling", *small)["scenes"]
    for row in rows.values():
        assert row["registered"] == 6
        assert row["focal_error_percent"] < 1
    assert rows["caransac"]["pairs_with_pose"] > 0.8 * rows["caransac"]["verified_pairs"]
    assert rows["caransac"]["median_pair_error_deg"] < 1
    assert rows["caransac"]["stored_focal_error_percent"] == rows["COLMAP"]["stored_focal_error_percent"]
    assert rows["caransac --write-focals"]["stored_focal_error_percent"] < 2

"""From rendered images to a reconstruction: COLMAP's mapper on pairs that caransac verified."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def run(tmp_path, script, *arguments):
    """What a benchmark of small images writes."""
    out = tmp_path / "result.json"
    command = [sys.executable, BENCHMARKS / script, "--width", "320", "--workers", "2", "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def test_the_mapper_finds_all_cameras(tmp_path):
    rows = run(tmp_path, "reconstruction.py", "--views", "5")["rows"]
    for tool in ("caransac", "COLMAP"):
        assert rows[tool]["registered"] == 5
        assert rows[tool]["worst_pose_error_deg"] < 0.5


def test_the_focal_length_is_found_before_mapping(tmp_path):
    (rows,) = run(tmp_path, "focal_pooling.py", "--views", "6", "--scenes", "1")["scenes"]
    for row in rows.values():
        assert row["registered"] == 6
        assert row["focal_error_percent"] < 1
    assert rows["caransac"]["pairs_with_pose"] > 0.8 * rows["caransac"]["verified_pairs"]
    assert rows["caransac"]["median_pair_error_deg"] < 1
    assert rows["caransac"]["stored_focal_error_percent"] == rows["COLMAP"]["stored_focal_error_percent"]
    assert rows["caransac --write-focals"]["stored_focal_error_percent"] < 2

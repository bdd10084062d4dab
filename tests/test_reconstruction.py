"""From rendered images to a reconstruction: COLMAP's mapper on pairs that caransac verified."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "reconstruction.py"


def test_the_mapper_finds_all_cameras(tmp_path):
    out = tmp_path / "result.json"
    command = [sys.executable, SCRIPT, "--views", "5", "--width", "320", "--workers", "2", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["rows"]
    for tool in ("caransac", "COLMAP"):
        assert rows[tool]["registered"] == 5
        assert rows[tool]["worst_pose_error_deg"] < 0.5

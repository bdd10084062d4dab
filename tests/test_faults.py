"""Commands in which one call fails, as on a full disk, are continued to the same result, and nothing is lost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "faults.py"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_sample_of_faults(tmp_path):
    table = tmp_path / "table.md"
    command = [sys.executable, SCRIPT, "--faults", "30", "--out", table]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (.+?) \| (\d+) \|.*\| (\d+) \| 0 \| 0 \| 0 \| 0 \|$", table.read_text(), re.MULTILINE)
    assert [(name, faults) for name, faults, continued in rows if faults == continued] == [
        ("verify, database", "6"),
        ("verify --overwrite, database", "6"),
        ("verify, hloc", "6"),
        ("verify --overwrite, hloc", "6"),
        ("bench", "3"),
        ("train", "3"),
    ]

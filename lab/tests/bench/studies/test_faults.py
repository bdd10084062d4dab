"""Commands with one failing call, as on a full disk, resume to the same result without any loss."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_sample_of_faults(tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "caransac_lab", "study", "faults", "--faults", "20", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(
        r"^\| (.+?) \| (\d+) \|.*\| (\d+) \| 0 \| 0 \| 0 \| 0 \|$", out.with_suffix(".md").read_text(), re.MULTILINE
    )
    assert [(name, faults) for name, faults, continued in rows if faults == continued] == [
        ("verify, database", "4"),
        ("verify --overwrite, database", "4"),
        ("verify, hloc", "4"),
        ("verify --overwrite, hloc", "4"),
        ("bench", "2"),
        ("train", "2"),
    ]

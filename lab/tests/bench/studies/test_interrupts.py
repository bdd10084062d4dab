"""Commands that are interrupted at random moments end quickly, explain how to resume, and lose nothing."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


RUNS = 20  # number of runs; the published table has 200


def test_random_moments(tmp_path):
    out = tmp_path / "out.json"
    command = [
        sys.executable,
        "-m",
        "caransac_lab",
        "study",
        "interrupts",
        "--runs",
        str(RUNS),
        "--jobs",
        "3",
        "--seed",
        "1",
        "--out",
        out,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(
        r"^\| (.+) \| (\d+) \| (\d+) \| (\d+) \| 0 \| 0 \| 0 \| (\d+) \|",
        out.with_suffix(".md").read_text(),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["verify, database", "verify, hloc", "bench", "train"]
    runs, in_time, later, ended_before = (sum(int(row[i]) for row in rows) for i in (1, 2, 3, 4))
    assert runs == RUNS == in_time + later + ended_before  # "later" depends on other load of the machine
    assert ended_before <= RUNS // 2, "most runs are interrupted in time"

"""Commands that are interrupted at random moments end soon, say how to continue, and lose nothing."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "interrupts.py"


def test_fifty_random_moments(tmp_path):
    table = tmp_path / "table.md"
    command = [sys.executable, SCRIPT, "--runs", "50", "--jobs", "3", "--seed", "1", "--out", table]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(
        r"^\| (.+) \| (\d+) \| (\d+) \| (\d+) \| 0 \| 0 \| 0 \| (\d+) \|", table.read_text(), re.MULTILINE
    )
    assert [row[0] for row in rows] == ["verify, database", "verify, hloc", "bench", "train"]
    runs, in_time, later, ended_before = (sum(int(row[i]) for row in rows) for i in (1, 2, 3, 4))
    assert runs == 50 == in_time + later + ended_before
    assert ended_before < 20, "most of them are interrupted"
    assert later <= 5, "others use the machine, too; the published table has none"

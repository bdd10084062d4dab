"""The benchmark of homographies: rows of some methods are replaced, those of the others stay."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from caransac.synthetic import random_plane

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "homographies.py"


@pytest.fixture
def scenes(tmp_path):
    """Two scenes of real pairs, as far as the benchmark can tell."""
    for number, scene in enumerate(("first", "second")):
        folder = tmp_path / "features" / "val" / scene
        folder.mkdir(parents=True)
        pair = random_plane(np.random.default_rng(number), num_points=400, inlier_ratio=0.4)
        arrays = {
            "matches": np.concatenate([pair.points1, pair.points2], axis=1),
            "match_conf": pair.scores,
            "H": pair.H,
            "sizes": np.array([pair.size1, pair.size2]),
        }
        for name, array in arrays.items():
            with h5py.File(folder / f"{name}.h5", "w") as file:
                file["1-2"] = array
    return tmp_path / "features" / "val"


def run(out, *arguments):
    command = [sys.executable, SCRIPT, "--rendered", "0", "--out", out, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_rows_are_merged(tmp_path, scenes):
    out = tmp_path / "result.json"
    done = run(out, scenes, "--synthetic", 2, "--methods", "LM-LO", "CA-RANSAC")
    assert done.returncode == 0, done.stderr
    before = json.loads(out.read_text())
    assert before["sets"]["real, features/val"]["pairs"] == ["first/1-2", "second/1-2"]
    assert all(error < 30 for error in before["methods"]["CA-RANSAC"]["sets"]["real, features/val"]["errors_px"])

    done = run(out, "--synthetic", 2, "--methods", "LM-LO", "CA-RANSAC, early stop")
    assert done.returncode == 0, done.stderr
    after = json.loads(out.read_text())
    assert list(after["methods"]) == ["CA-RANSAC", "CA-RANSAC, early stop", "LM-LO"]
    assert after["methods"]["CA-RANSAC"] == before["methods"]["CA-RANSAC"]
    for name, row in before["methods"]["LM-LO"]["sets"].items():
        assert after["methods"]["LM-LO"]["sets"][name]["errors_px"] == row["errors_px"]
    table = out.with_suffix(".md").read_text()
    assert "## Real, features/val" in table
    assert "## Synthetic, 1 % right" in table

    refused = run(out, "--synthetic", 2, "--first-seed", 5, "--methods", "LM-LO")
    assert refused.returncode != 0
    assert "run all methods" in refused.stderr
    assert json.loads(out.read_text()) == after

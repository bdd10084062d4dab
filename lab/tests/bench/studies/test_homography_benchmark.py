"""The homography benchmark: real and synthetic planes, and the tables of a small run."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

from caransac_lab.synthetic import random_plane

pytestmark = pytest.mark.slow


@pytest.fixture
def scenes(tmp_path):
    """Two scenes of synthetic pairs in the layout of real ones."""
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
    command = [
        sys.executable,
        "-m",
        "caransac_lab",
        "study",
        "homographies",
        "--rendered",
        "0",
        "--out",
        out,
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_real_and_made_planes(tmp_path, scenes):
    out = tmp_path / "result.json"
    done = run(out, scenes, "--synthetic", 2, "--methods", "LM-LO", "CA-RANSAC", "PoseLib")
    assert done.returncode == 0, done.stderr
    content, text = json.loads(out.read_text()), out.with_suffix(".md").read_text()
    real = content["sets"]["real, features/val"]
    assert real["pairs"] == 2 and real["parts"] == {"first": 1, "second": 1}
    ours = content["methods"]["CA-RANSAC"]["real, features/val"]
    assert ours["above_20_px"] == 0 and ours["max_error_px"] is None
    assert ours["AUC5"] == pytest.approx(sum(ours["parts_AUC5"].values()) / 2, abs=1e-2)
    if "PoseLib" in content["methods"]:  # the truth of real planes has an error of one or two pixels
        thresholds = {name: row["max_error_px"] for name, row in content["methods"]["PoseLib"].items()}
        assert thresholds["real, features/val"] == 2 != thresholds["synthetic, 1 % right"]
    assert "## Real, features/val" in text and "## Synthetic, 1 % right" in text
    assert str(tmp_path) not in text

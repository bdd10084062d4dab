"""From rendered images to a reconstruction: COLMAP's mapper on pairs that caransac verified."""

import json
import subprocess
import sys

import pytest

from caransac.geometry import rotation_from_vector
from caransac.io.images import write_image
from caransac_lab.render import render_views

pytestmark = pytest.mark.slow


def run(tmp_path, study, *arguments):
    """Run a study on small images. Return the content of its file."""
    out = tmp_path / "result.json"
    command = [sys.executable, "-m", "caransac_lab", "study", study, "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def write_photographs(folder):
    """Write rendered views with their cameras, and a false rotation of the last one."""
    views = render_views(5, width=320, height=240, seed=1)
    cameras = {}
    for number, image in enumerate(views.images):
        write_image(folder / f"{number}.jpg", image)
        cameras[str(number)] = {
            "K": views.camera.K.tolist(),
            "R": views.rotations[number].tolist(),
            "t": views.translations[number].tolist(),
            "width": 320,
            "height": 240,
        }
    cameras["4"]["R"] = (rotation_from_vector([0, 0.5, 0]) @ views.rotations[4]).tolist()
    (folder / "cameras.json").write_text(json.dumps(cameras))
    return folder


def test_the_mapper_finds_all_cameras(tmp_path):
    folder = write_photographs(tmp_path / "house")
    found = run(tmp_path, "reconstruction", "--quick", "--photographs", folder)
    for scene, most_deg in ((found["scenes"]["boxes"], 0.5), (found["photographs"]["house"], 180)):
        rows = scene["rows"]
        assert len(rows) == 4
        for row in rows.values():
            assert row["registered"] == 5
            assert row["median_pose_error_deg"] < 0.5 and row["worst_pose_error_deg"] < most_deg
            assert row["points"] > 100
            assert row["verification_s"] > 0
    assert {row["wrong"] for row in found["scenes"]["boxes"]["rows"].values()} == {0}
    assert {row["wrong"] for row in rows.values()} == {1}, "the camera of the last photograph is false"
    assert "| caransac, 4 px | 5 |" in (tmp_path / "result.md").read_text()


def test_refined_keypoints_give_better_poses(tmp_path):
    folder = write_photographs(tmp_path / "house")
    cameras = json.loads((folder / "cameras.json").read_text())
    cameras["4"]["R"] = render_views(5, width=320, height=240, seed=1).rotations[4].tolist()
    (folder / "cameras.json").write_text(json.dumps(cameras))
    rows = run(tmp_path, "keypoints", "--quick", folder)["scenes"]["house"]["rows"]
    before, after = rows["ORB, verified"], rows["ORB, refined"]
    assert before["images"] == after["images"] == 5
    assert after["reprojection_px"] < before["reprojection_px"]  # the mapper varies from run to run
    assert after["centre_mm"] < before["centre_mm"]
    assert rows["COLMAP's SIFT, refined"]["images"] == 5


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

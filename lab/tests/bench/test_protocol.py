"""The rules: input of a method, treatment of its answer, and measurement of its error."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from caransac.camera import Camera
from caransac.geometry import essential_from_pose, fundamental_from_essential, pose_error_deg, rotation_from_vector
from caransac.synthetic import make_pair
from caransac_lab.bench import breakdown, summary
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.filters import ratio_filter, saved_filter
from caransac_lab.bench.protocol import BenchMethod, Job, Outcome, polish_fundamental, polish_pose, run_job, undistorted
from caransac_lab.datasets import Pair


def clean_pair(num_points=200, outlier_ratio=0.3, **given):
    made = make_pair(num_points, outlier_ratio, **given)
    cameras = made.camera1, made.camera2
    return Pair("made", "0", made.points1, made.points2, made.scores, *cameras, made.R, made.t)


def test_ratio_filter_keeps_the_good_ones_best_first():
    pair = clean_pair()
    kept = ratio_filter(0.85).apply(pair)
    assert len(kept.points1) == (pair.scores < 0.85).sum()
    best = np.argmin(pair.scores)
    assert np.array_equal(kept.points1[0], pair.points1[best])
    assert np.all(np.diff(kept.scores) <= 0)
    assert len(ratio_filter(1e-6).apply(pair).points1) == 20
    assert ratio_filter(0.85).apply(replace(pair, scores=None)).scores is None
    confident = ratio_filter(0.85).apply(replace(pair, scores=1 - pair.scores, score_kind="confidence"))
    assert len(confident.points1) == len(pair.points1)
    assert np.array_equal(confident.points1[0], pair.points1[best])


def test_saved_weights_filter_by_pair(tmp_path):
    pair = clean_pair()
    np.savez(tmp_path / "weights.npz", **{"made/0": np.linspace(0, 1, 200)})
    kept = saved_filter(f"mine={tmp_path / 'weights.npz'}:0.5").apply(pair)
    assert np.array_equal(kept.points1, pair.points1[:99:-1])
    with pytest.raises(ValueError, match="no weights of made/1"):
        saved_filter(f"mine={tmp_path / 'weights.npz'}").apply(replace(pair, name="1"))
    for wrong in ("mine", "=x", f"mine={tmp_path / 'nowhere.npz'}", f"mine={tmp_path / 'weights.npz'}:much"):
        with pytest.raises(ValueError, match="--filter"):
            saved_filter(wrong)


def test_saved_weights_that_have_changed_are_read_again(tmp_path):
    pair, path = clean_pair(), tmp_path / "weights.npz"
    np.savez(path, **{"made/0": np.arange(200.0)})
    saved = saved_filter(f"mine={path}")
    assert np.array_equal(saved.apply(pair).points1[0], pair.points1[199])
    np.savez(tmp_path / "others.npz", **{"made/0": np.arange(200.0)[::-1]})
    (tmp_path / "others.npz").replace(path)
    assert np.array_equal(saved.apply(pair).points1[0], pair.points1[0])


def test_final_refinement_improves_a_rough_answer():
    pair = clean_pair(400, 0.2, noise_px=0.2)
    rough = rotation_from_vector([0.0005, -0.0005, 0.0003]) @ pair.R, pair.t
    before = pose_error_deg(*rough, pair.R, pair.t)
    polished = polish_pose(rough, pair)
    assert pose_error_deg(*polished, pair.R, pair.t) < 0.5 * before
    K = pair.camera1.K
    F = polish_fundamental(fundamental_from_essential(essential_from_pose(*rough), K, K), pair)
    truth = fundamental_from_essential(essential_from_pose(pair.R, pair.t), K, K)
    assert abs(np.sum(F * truth) / np.linalg.norm(F) / np.linalg.norm(truth)) > 1 - 1e-4


def test_lenses_are_removed_before_any_method_sees_the_points():
    pair = clean_pair()
    camera = Camera("SIMPLE_RADIAL", (*pair.camera1.params, 0.05), 1024, 768)
    bent = replace(pair, points1=camera.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1)), camera1=camera)
    straight = undistorted(bent)
    assert not straight.camera1.is_distorted
    assert np.abs(straight.points1 - pair.points1).max() < 1e-3
    assert np.allclose(straight.camera1.K, pair.camera1.K)


def test_failures_count_180_degrees_and_folding_ignores_the_sign():
    failed = Outcome(status="failed")
    assert failed.error_deg == failed.folded_error_deg == 180
    reversed_ = Outcome(status="found", rotation_deg=1.0, translation_deg=178.0)
    assert reversed_.error_deg == 178
    assert reversed_.folded_error_deg == pytest.approx(2)
    assert summary.figures([reversed_, failed])["AUC5"] == 0
    assert summary.figures([reversed_, failed])["AUC5 folded"] == pytest.approx(30)
    exact = Outcome(status="found", rotation_deg=0.0, translation_deg=5.0)
    figures = summary.figures([exact])
    assert [figures[name] for name in ("AUC5", "AUC10", "AUC20", "MAP20")] == pytest.approx([0, 50, 75, 100])
    assert set(figures) == set(summary.FIGURES)


def test_an_error_of_a_peer_affects_no_other_method(monkeypatch):
    def broken(*_):
        raise RuntimeError("no")

    monkeypatch.setitem(ESTIMATORS, "PoseLib", replace(ESTIMATORS["PoseLib"], run=broken))
    outcome = run_job(Job(BenchMethod("PoseLib", None, "PoseLib"), "E", RunSettings()), clean_pair())
    assert (outcome.status, outcome.error_deg) == ("crashed", 180)


def test_the_parts_of_a_run_add_up_to_its_time():
    pair = clean_pair()
    for name, filtered, expected in (("CA-RANSAC", False, {"solve", "network"}), ("PoseLib", True, {"filter"})):
        job = Job(BenchMethod(name, ratio_filter(0.85) if filtered else None, name), "E", RunSettings(iterations=512))
        parts = breakdown.parts_ms(job, pair)
        assert expected < set(parts) <= set(breakdown.PARTS)
        assert all(ms >= 0 for ms in parts.values())
        assert sum(parts.values()) > parts["other"] > 0
    before = sys.getprofile()
    with breakdown.timing():
        assert sys.getprofile() is not before
    assert sys.getprofile() is before

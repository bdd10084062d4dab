"""Hard scenes made of real matches."""

import numpy as np
import pytest

from caransac.geometry import homogeneous
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair
from caransac_lab.training.restaging import FEW, SCENE_KINDS, restage


@pytest.fixture(scope="module")
def pair():
    return Pair.from_synthetic(make_pair(600, outlier_ratio=0.4, noise_px=0.3, seed=3))


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_every_kind_is_a_pair_like_any_other(pair, kind, rng):
    for _ in range(10):
        staged = restage(pair, kind, rng).pair
        assert staged.points1.shape == staged.points2.shape == (len(staged.points1), 2)
        assert np.isfinite(staged.points1).all()
        assert np.isfinite(staged.points2).all()
        assert staged.scores is None or len(staged.scores) == len(staged.points1)


@pytest.mark.parametrize("kind", ["plane", "line", "tiny"])
def test_the_truth_goes_with_the_scene(pair, kind, rng):
    shares = [restage(pair, kind, rng).pair.right_matches().mean() for _ in range(20)]
    assert np.mean(shares) > 0.4  # noise of up to one and a half pixels takes some beyond one


@pytest.mark.parametrize("kind", ["plane", "rotation"])
def test_the_homography_maps_the_right_matches(pair, kind, rng):
    for _ in range(10):
        scene = restage(pair, kind, rng)
        moved = homogeneous(scene.pair.points1) @ scene.H.T
        errors = np.linalg.norm(moved[:, :2] / moved[:, 2:] - scene.pair.points2, axis=1)
        assert np.mean(errors < 12) > 0.25


def test_no_translation_is_right_where_the_camera_only_turned(pair, rng):
    scene = restage(pair, "rotation", rng)
    assert scene.pair.R is None
    assert scene.pair.t is None


def test_few_means_few(pair, rng):
    sizes = [len(restage(pair, "few", rng).pair.points1) for _ in range(30)]
    assert FEW[0] <= min(sizes) <= max(sizes) <= FEW[1]


def test_wrong_focal_lengths_keep_the_matches(pair, rng):
    staged = restage(pair, "focal", rng).pair
    assert np.array_equal(staged.points1, pair.points1)
    assert abs(np.log(staged.camera1.mean_focal / pair.camera1.mean_focal)) > np.log(1.4)

"""Hard scenes made from real matches."""

import numpy as np
import pytest

from caransac.geometry import homogeneous
from caransac.geometry.mirroring import mirrored_share
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair
from caransac_lab.training.photographs import mirrored, overlaid, sheared
from caransac_lab.training.restaging import FEW, SCENE_KINDS, restage


@pytest.fixture(scope="module")
def pair():
    return Pair.from_synthetic(make_pair(600, outlier_ratio=0.4, noise_px=0.3, seed=3))


@pytest.mark.parametrize("kind", SCENE_KINDS)
def test_every_kind_gives_an_ordinary_pair(pair, kind, rng):
    for _ in range(10):
        staged = restage(pair, kind, rng).pair
        assert staged.points1.shape == staged.points2.shape == (len(staged.points1), 2)
        assert np.isfinite(staged.points1).all()
        assert np.isfinite(staged.points2).all()
        assert staged.scores is None or len(staged.scores) == len(staged.points1)


@pytest.mark.parametrize("kind", ["plane", "line", "tiny"])
def test_the_truth_matches_the_new_scene(pair, kind, rng):
    shares = [restage(pair, kind, rng).pair.right_matches().mean() for _ in range(20)]
    assert np.mean(shares) > 0.4  # noise of up to 1.5 px moves some matches farther than 1 px


@pytest.mark.parametrize("kind", ["plane", "rotation"])
def test_the_homography_maps_the_right_matches(pair, kind, rng):
    for _ in range(10):
        scene = restage(pair, kind, rng)
        moved = homogeneous(scene.pair.points1) @ scene.H.T
        errors = np.linalg.norm(moved[:, :2] / moved[:, 2:] - scene.pair.points2, axis=1)
        assert np.mean(errors < 12) > 0.25


def test_pure_rotations_have_no_right_translation(pair, rng):
    scene = restage(pair, "rotation", rng)
    assert scene.pair.R is None
    assert scene.pair.t is None


def test_few_means_few(pair, rng):
    sizes = [len(restage(pair, "few", rng).pair.points1) for _ in range(30)]
    assert FEW[0] <= min(sizes) <= max(sizes) <= FEW[1]


def test_wrong_focal_lengths_keep_the_matches(pair, rng):
    staged = restage(pair, "focal", rng).pair
    assert np.array_equal(staged.points1, pair.points1)
    assert abs(np.log(staged.camera1.mean_focal / pair.camera1.mean_focal)) > np.log(1.1)


def test_principal_points_that_are_off_keep_the_matches(pair, rng):
    staged = restage(pair, "centre", rng).pair
    assert np.array_equal(staged.points1, pair.points1)
    off = np.linalg.norm((staged.camera1.K - pair.camera1.K)[:2, 2])
    assert 0.02 * pair.camera1.width < off < 0.2 * pair.camera1.width


def test_a_facade_has_matches_of_the_next_window(pair, rng):
    shares = [restage(pair, "facade", rng).pair.right_matches().mean() for _ in range(20)]
    assert 0.1 < np.mean(shares) < 0.6


def test_a_mirrored_pair_has_no_pose(pair):
    flipped = mirrored(pair)
    assert flipped.R is None and flipped.t is None
    np.testing.assert_allclose(mirrored(flipped).points2, pair.points2)
    share, other = (mirrored_share(each.points1, each.points2) for each in (pair, flipped))
    assert share + other == pytest.approx(1)


def test_an_overlay_adds_matches_that_do_not_move(pair, rng):
    for _ in range(5):
        more = overlaid(pair, rng)
        still = np.linalg.norm(more.points2 - more.points1, axis=1) < 2
        assert still.sum() >= len(more.points1) - len(pair.points1) > 1
        assert np.ptp(more.points1[still], axis=0).max() < 0.6 * np.ptp(pair.points1, axis=0).max()
        assert len(more.scores) == len(more.points1) and np.array_equal(more.R, pair.R)


def test_a_rolling_shutter_moves_rows_sideways(pair, rng):
    moved = np.mean([np.abs(sheared(pair, rng).points1 - pair.points1).mean(axis=0) for _ in range(20)], axis=0)
    assert moved[0] > moved[1] > 0

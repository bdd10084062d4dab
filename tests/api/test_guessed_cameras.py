"""Fundamental matrices without image sizes: cameras are guessed, and dropped if the matches contradict them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from caransac import Camera, Options, estimate_fundamental
from caransac.api import guessed_cameras
from caransac.geometry import Array, essential_from_pose, fundamental_from_essential
from caransac.robust.problems import FocalPose
from caransac.tuning import DEFAULT_TUNING, Tuning

K = np.array([[800.0, 0, 500], [0, 800, 375], [0, 0, 1]])
PLAIN = replace(DEFAULT_TUNING, guessed_centre_deviation=0.0)


def two_views(seed: int, *, off_plane: int, on_plane: int, noise: float = 0.5) -> tuple[Array, Array, Array]:
    """Create pixels of a plane and a few points off it, a fifth of the matches wrong. Return them and the true F."""
    rng = np.random.default_rng(seed)
    flat = np.column_stack([rng.uniform(-3, 3, on_plane), rng.uniform(-2, 2, on_plane), np.full(on_plane, 6.0)])
    deep = np.column_stack([rng.uniform(-2, 2, off_plane), rng.uniform(-2, 2, off_plane), rng.uniform(3, 9, off_plane)])
    points = np.concatenate([flat, deep])
    angle = 0.2
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    t = np.array([-1.5, 0.2, 0.3])
    pixels = []
    for seen in (points, points @ R.T + t):
        projected = seen @ K.T
        pixels.append(projected[:, :2] / projected[:, 2:] + noise * rng.standard_normal((len(points), 2)))
    wrong = rng.permutation(len(points))[: len(points) // 5]
    pixels[1][wrong] = rng.uniform((0, 0), (1000, 750), (len(wrong), 2))
    F = fundamental_from_essential(essential_from_pose(R, t / np.linalg.norm(t)), K, K)
    return pixels[0], pixels[1], F / np.linalg.norm(F)


def epipole_error(F: Array, truth: Array) -> float:
    """Return the angle in degrees between the epipoles in image 2, measured as rays of the true camera."""
    directions = [np.linalg.solve(K, np.linalg.svd(each)[0][:, 2]) for each in (F, truth)]
    cosine = abs(np.dot(*(each / np.linalg.norm(each) for each in directions)))
    return float(np.degrees(np.arccos(min(cosine, 1.0))))


def test_a_plane_does_not_mislead_guessed_cameras() -> None:
    """With 10 matches off a plane of 200, cameras determine the epipole; otherwise many matrices fit the plane."""
    errors = {"guessed": [], "plain": []}
    for seed in range(12):
        points1, points2, truth = two_views(seed, off_plane=10, on_plane=200, noise=1.0)
        for name, tuning in (("guessed", DEFAULT_TUNING), ("plain", PLAIN)):
            found = estimate_fundamental(points1, points2, options=Options(seed=seed, tuning=tuning))
            assert found.F is not None
            errors[name].append(epipole_error(found.F, truth))
    assert np.median(errors["guessed"]) < 5
    assert np.mean(np.array(errors["guessed"]) > 5) < np.mean(np.array(errors["plain"]) > 5)


def test_impossible_cameras_are_dropped() -> None:
    """Pixels are sheared and six times as wide as high, so only an unconstrained matrix fits."""
    shear = np.array([[6.0, 0.0], [3.0, 1.0]])
    points1, points2, _ = two_views(3, off_plane=300, on_plane=0)
    calls = {}
    for name, tuning in (("guessed", DEFAULT_TUNING), ("plain", PLAIN)):
        options = Options(seed=0, tuning=tuning, early_stop=False)
        calls[name] = estimate_fundamental(points1 @ shear, points2 @ shear, options=options)
    assert calls["guessed"].num_inliers > 200
    np.testing.assert_array_equal(calls["guessed"].F, calls["plain"].F)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
def test_answers_move_with_the_pixels(scale: float) -> None:
    """Another origin or unit of the pixels changes only the unit of the answer."""
    points1, points2, truth = two_views(1, off_plane=200, on_plane=0)
    options = Options(seed=0, early_stop=False)
    shift = np.array([-300.0, 4000.0])
    found = estimate_fundamental(scale * (points1 + shift), scale * (points2 + shift), options=options)
    assert found.F is not None
    T = np.array([[scale, 0, scale * shift[0]], [0, scale, scale * shift[1]], [0, 0, 1]])
    F = T.T @ found.F @ T
    assert epipole_error(F / np.linalg.norm(F), truth) < 3


def test_boxes_are_joined_if_images_may_have_one_size() -> None:
    """If the overlap is left in one image and right in the other, both share one bounding box unless sizes differ."""
    rng = np.random.default_rng(0)
    left, right = rng.uniform((0, 0), (500, 700), (300, 2)), rng.uniform((500, 0), (1000, 700), (300, 2))
    (low1, high1), (low2, high2) = guessed_cameras._boxes(left, right)
    np.testing.assert_array_equal([low1, high1], [low2, high2])
    assert low1[0] < 20 and high1[0] > 980
    (_, high1), (_, high2) = guessed_cameras._boxes(left, 10 * right)
    assert high1.max() < 800 and high2.max() > 8000
    wild = np.concatenate([left, [[1e12, -1e12]]])
    (_, high1), _ = guessed_cameras._boxes(wild, np.concatenate([right, [[0, 0]]]))
    assert high1.max() < 1001


def test_points_without_extent_have_no_camera() -> None:
    """If all matches are at one point, the estimate fails without a division by zero."""
    places = np.full((40, 2), 7.0)
    assert not estimate_fundamental(places, places).success


def test_a_poor_answer_with_cameras_competes_with_the_matrix_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cameras are far off, and the matrix next to the answer is no better: only another search finds the truth."""
    points1, points2, truth = two_views(0, off_plane=300, on_plane=0)
    far_off = Camera("SIMPLE_PINHOLE", (30.0, 500.0, 375.0), focal_deviation=0.01)

    def guess(points1: Array, points2: Array, _: Tuning) -> FocalPose:
        return FocalPose.from_pixels(points1, points2, far_off, far_off, shared=False)

    monkeypatch.setattr(guessed_cameras, "guess_cameras", guess)
    monkeypatch.setattr(guessed_cameras, "_gain", lambda *_: 0.0)
    never = replace(DEFAULT_TUNING, expected_share=0.0)
    poor = estimate_fundamental(points1, points2, options=Options(tuning=never))
    found = estimate_fundamental(points1, points2)
    assert poor.num_inliers < 0.5 * found.num_inliers
    assert found.F is not None and epipole_error(found.F, truth) < 2

"""Keypoints of images: read once, undistorted once; keypoints without a ray are never inliers."""

import numpy as np
import pytest

from caransac import Camera
from caransac.synthetic import make_pair
from caransac.verification import PairMatches, VerificationOptions
from caransac.verification.keypoints import KeypointCache
from caransac.verification.pair_verification import verify_pair

LENSES = {
    "plain": Camera("SIMPLE_PINHOLE", (900, 512, 384), 1024, 768),
    "bent": Camera("RADIAL", (900, 512, 384, -0.1, 0.02), 1024, 768),
    "folded": Camera("SIMPLE_RADIAL", (300, 512, 384, -0.08), 1024, 768),  # cannot be inverted in the corners
    "unknown": None,
}


@pytest.fixture
def keypoints(rng):
    return {name: rng.uniform((0, 0), (1024, 768), (50, 2)).astype(np.float32) for name in LENSES}


def test_images_are_read_and_undistorted_once(keypoints, monkeypatch):
    read, undistorted, undistort = [], [], Camera.undistort_pixels

    def count(camera, points):
        undistorted.append(len(points))
        return undistort(camera, points)

    monkeypatch.setattr(Camera, "undistort_pixels", count)
    cache = KeypointCache(lambda name: read.append(name) or keypoints[name], LENSES.get, "matches.h5")
    matches = np.zeros((1, 2), np.uint32)
    for _ in range(3):
        for pair in (("plain", "bent"), ("bent", "folded"), ("bent", "unknown")):
            cache.matched(pair, pair, matches)
    assert sorted(read) == ["bent", "folded", "plain", "unknown"]
    assert undistorted == [50, 50]  # pinhole cameras need no undistortion


def test_points_and_cameras_of_a_pair_fit_together(keypoints, rng):
    cache = KeypointCache(keypoints.get, LENSES.get, "matches.h5")
    matches = rng.integers(0, 50, (30, 2)).astype(np.uint32)
    for pair in (("plain", "bent"), ("folded", "plain")):
        *points, cameras = cache.matched(pair, pair, matches)
        for name, column, pixels, camera in zip(pair, matches.T, points, cameras, strict=True):
            expected = LENSES[name].pixels_to_rays(keypoints[name][column].astype(float))
            np.testing.assert_allclose(camera.pixels_to_rays(pixels), expected, atol=1e-14)
            assert np.isnan(expected).any() == (name == "folded")
    points1, points2, cameras = cache.matched(("bent", "unknown"), ("bent", "unknown"), matches)
    assert cameras is None
    assert np.array_equal(points1, keypoints["bent"][matches[:, 0]])  # original pixels, because F uses no lens
    assert np.array_equal(points2, keypoints["unknown"][matches[:, 1]])


def test_matches_of_keypoints_that_are_not_there_are_named(keypoints):
    cache = KeypointCache(keypoints.get, LENSES.get, "matches.h5")
    message = r"matches\.h5: matches of a and b name keypoint 50, but b has 50: its features were extracted again"
    with pytest.raises(ValueError, match=message):
        cache.matched(("plain", "bent"), ("a", "b"), np.array([[0, 50]], np.uint32))


@pytest.mark.parametrize("outlier_ratio", [0.0, 0.5])
def test_matches_without_a_ray_only_shift_the_indices(outlier_ratio):
    pair = make_pair(200, outlier_ratio)
    blind = np.sort(np.random.default_rng(0).choice(230, 30, replace=False))
    seeing = np.setdiff1d(np.arange(230), blind)
    found = []
    for rows, count in ((np.arange(200), 200), (seeing, 230)):
        points1, points2 = np.full((2, count, 2), np.nan)
        points1[rows], points2[rows] = pair.points1, pair.points2
        matches = np.stack([np.arange(count)] * 2, axis=1).astype(np.uint32)
        given = {"key": 0, "image1": "a", "image2": "b", "cameras": (pair.camera1, pair.camera2)}
        found.append(
            verify_pair(PairMatches(matches=matches, points1=points1, points2=points2, **given), VerificationOptions())
        )
    assert np.array_equal(found[1].matches[:, 0], seeing[found[0].matches[:, 0]])
    assert np.array_equal(found[1].E, found[0].E) and found[1].confidence == found[0].confidence
    assert (found[0].num_matches, found[1].num_matches) == (200, 230)


def test_a_pair_without_any_ray_is_degenerate():
    nothing, plain = np.full((40, 2), np.nan), LENSES["plain"]
    matches = np.stack([np.arange(40)] * 2, axis=1).astype(np.uint32)
    pair = PairMatches(
        key=0, image1="a", image2="b", matches=matches, points1=nothing, points2=nothing, cameras=(plain, plain)
    )
    found = verify_pair(pair, VerificationOptions())
    assert found.config.name == "DEGENERATE" and found.num_matches == 40

"""Verification of a pair: kinds of geometry are distinguished, and hopeless pairs are degenerate."""

from dataclasses import replace

import numpy as np
import pytest
from databases import some_pairs

from caransac.camera import Camera
from caransac.geometry import homogeneous, pose_error_deg, rotation_angle_deg, rotation_from_vector
from caransac.synthetic import make_pair, make_plane
from caransac.verification import Config, PairMatches, VerificationOptions
from caransac.verification.pair_verification import pair_seed, verify_pair

PAIRS = some_pairs(1)


def as_matches(pair, cameras=True):
    """Return a pair in the form in which a source reads it."""
    points1, points2 = (points.astype(np.float32) for points in (pair.points1, pair.points2))
    if cameras:
        points1 = pair.camera1.undistort_pixels(points1.astype(float))
        points2 = pair.camera2.undistort_pixels(points2.astype(float))
    return PairMatches(
        key=0,
        image1="a",
        image2="b",
        matches=np.stack([np.arange(len(pair.points1))] * 2, axis=1).astype(np.uint32),
        points1=points1,
        points2=points2,
        cameras=(pair.camera1.pinhole, pair.camera2.pinhole) if cameras else None,
    )


@pytest.mark.parametrize("cameras", [True, False])
def test_mirrored_images_have_no_geometry(cameras):
    plane = make_plane(400, 0.2, seed=2)
    pair = make_pair(400, 0.3, seed=2)
    # On a plane, neighbours in the image are neighbours in space.
    pair = replace(pair, points1=plane.points1, points2=plane.points2)
    assert verify_pair(as_matches(pair, cameras), VerificationOptions()).config != Config.DEGENERATE
    mirrored = replace(pair, points2=[pair.camera2.width - 1, 0] + pair.points2 * [-1, 1])
    found = verify_pair(as_matches(mirrored, cameras), VerificationOptions())
    assert found.config == Config.DEGENERATE and len(found.matches) == 0


@pytest.mark.parametrize("distorted", [False, True])
def test_planes_are_recognised(rng, distorted):
    camera = Camera("RADIAL", (900, 512, 384, -0.1, 0.02), 1024, 768) if distorted else PAIRS[0].camera1
    rays1 = camera.pixels_to_rays(rng.uniform((50, 50), (970, 710), (300, 2)))
    R, t = rotation_from_vector([0.05, -0.1, 0.02]), np.array([0.4, 0.1, 0.05])
    normal = np.array([0.2, -0.1, 1.0]) / 4  # normal of the plane divided by its distance
    moved = homogeneous(rays1) @ (R + np.outer(t, normal)).T
    points1, points2 = camera.rays_to_pixels(rays1), camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
    points1, points2 = (points + rng.normal(size=points.shape) * 0.3 for points in (points1, points2))
    plane = replace(PAIRS[0], points1=points1, points2=points2, camera1=camera, camera2=camera)
    found = verify_pair(as_matches(plane), VerificationOptions())
    assert found.config == Config.PLANAR
    assert pose_error_deg(found.R, found.t, R, t) < 10  # noisy matches of one plane allow no better pose
    expected = camera.K @ (R + np.outer(t, normal)) @ np.linalg.inv(camera.K)
    np.testing.assert_allclose(found.H / found.H[2, 2], expected / expected[2, 2], rtol=0.05, atol=2)
    if not distorted:
        assert verify_pair(as_matches(plane, cameras=False), VerificationOptions()).config == Config.PLANAR_OR_PANORAMIC


def test_rotations_are_recognised(rng):
    camera = PAIRS[0].camera1
    points1 = rng.uniform((100, 100), (900, 650), (300, 2))
    R = rotation_from_vector([0.02, 0.1, -0.05])
    moved = homogeneous(camera.pixels_to_rays(points1)) @ R.T
    points2 = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:]) + rng.normal(size=points1.shape) * 0.3
    wrong = rng.random(300) < 0.3
    points2[wrong] = rng.uniform((0, 0), (1024, 768), (wrong.sum(), 2))
    found = verify_pair(as_matches(replace(PAIRS[0], points1=points1, points2=points2)), VerificationOptions())
    assert found.config == Config.PANORAMIC
    assert found.E is None and found.F is None
    np.testing.assert_array_equal(found.t, 0)
    assert rotation_angle_deg(found.R @ R.T) < 0.05
    expected = camera.K @ R @ np.linalg.inv(camera.K)
    np.testing.assert_allclose(found.H / found.H[2, 2], expected / expected[2, 2], rtol=1e-2, atol=1)


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_hopeless_pairs_are_degenerate(count):
    pair = make_pair(max(count, 1), 0.0)
    pair = replace(pair, points1=pair.points1[:count], points2=pair.points2[:count])
    for cameras in (True, False):
        assert verify_pair(as_matches(pair, cameras), VerificationOptions(min_inliers=0)).config in (
            (Config.DEGENERATE,) if count < 6 else tuple(Config)
        )
    same = replace(pair, points1=np.full((30, 2), 5.0), points2=np.full((30, 2), 7.0))
    assert verify_pair(as_matches(same), VerificationOptions()).config == Config.DEGENERATE


def test_seeds_depend_on_the_run_and_on_both_names():
    seeds = {pair_seed(seed, *names) for seed in (0, 1) for names in (("a", "b"), ("b", "a"), ("a", "c"))}
    assert len(seeds) == 6 and all(0 <= seed < 2**64 for seed in seeds)


@pytest.mark.parametrize("cameras", [True, False])
def test_wrong_pairs_are_degenerate_if_the_focal_lengths_are_known(rng, cameras):
    """By chance, enough of many wrong matches agree with some pose. Without cameras, the confidence is less useful."""
    supported = 0
    for points1, points2 in rng.uniform((0, 0), (1024, 768), (4, 2, 2000, 2)):
        pair = as_matches(replace(PAIRS[0], points1=points1, points2=points2), cameras)
        found = verify_pair(pair, VerificationOptions())
        assert found.confidence < 0.2
        assert not cameras or found.config == Config.DEGENERATE
        assert verify_pair(pair, VerificationOptions(min_confidence=0.2)).config == Config.DEGENERATE
        supported += len(verify_pair(pair, VerificationOptions(min_confidence=0.0)).matches) >= 15
    assert supported > 0, "without the confidence, a wrong pair passes"

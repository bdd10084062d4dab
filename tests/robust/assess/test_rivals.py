"""Rival motions: models that explain matches which the answer does not explain."""

from dataclasses import replace

import numpy as np
import pytest

from caransac import Camera, Rival, estimate, estimate_absolute_pose, estimate_fundamental, estimate_relative_pose
from caransac.geometry import absolute_pose_error_deg, pose_error_deg, rotation_from_vector
from caransac.robust.assess.rivals import unmoved
from caransac.robust.problems import Absolute, Essential
from caransac.synthetic import make_pair, make_query
from caransac_lab.synthetic.hard_scenes import CAMERA, make_hard_pair


def both_motions(seed=0, share=0.6):
    """Combine matches of two pairs with one camera: a share from the first pair, the others from the second."""
    first, second = (make_pair(500, outlier_ratio=0.0, noise_px=0.5, seed=10 * seed + k) for k in (1, 2))
    count = int(share * 500)
    points = (
        np.concatenate([getattr(first, name)[:count], getattr(second, name)[count:]]) for name in ("points1", "points2")
    )
    return *points, first, second, count


@pytest.mark.parametrize("seed", range(3))
def test_the_other_motion_is_reported_with_its_share(seed):
    points1, points2, first, second, count = both_motions(seed)
    found = estimate_relative_pose(points1, points2, first.camera1, first.camera2)
    assert pose_error_deg(found.R, found.t, first.R, first.t) < 3
    (rival,) = found.rivals
    assert isinstance(rival, Rival)
    assert pose_error_deg(rival.R, rival.t, second.R, second.t) < 5
    assert rival.share == pytest.approx(0.4, abs=0.06)
    assert rival.inliers.shape == (500,) and not (rival.inliers & found.inliers).any()
    assert rival.inliers[count:].mean() > 0.85
    assert found.confidence < 0.9
    again = type(found).from_dict(found.to_dict(full=True))
    np.testing.assert_array_equal(again.rivals[0].inliers, rival.inliers)
    np.testing.assert_array_equal(again.rivals[0].model, rival.model)


def test_fundamental_matrices_have_rivals():
    points1, points2, first, *_ = both_motions(4)
    size = first.camera1.width, first.camera1.height
    for more in ({}, {"image_size1": size, "image_size2": size}):
        found = estimate_fundamental(points1, points2, **more)
        assert found.rivals[0].model.shape == (3, 3)
        assert found.rivals[0].R is None and found.rivals[0].t is None


def test_the_one_call_reports_rivals():
    points1, points2, first, *_ = both_motions(1, share=0.7)
    found = estimate(points1, points2, first.camera1, first.camera2)
    assert found.rivals and "another motion explains" in found.reason


@pytest.mark.parametrize("outlier_ratio", [0.0, 0.5, 0.7])
def test_scenes_of_one_motion_have_no_rival(outlier_ratio):
    for seed in range(5):
        pair = make_pair(600, outlier_ratio=outlier_ratio, noise_px=0.5, seed=seed)
        found = estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
        assert found.rivals == ()


COPIES = {"repetition": (0.0, 1.0), "half turn": (np.pi, 0.0), "moved poster": (0.3, 1.0)}


def copied(name, seed, share):
    """Create a query in which a share of the matches belongs to a copy of the scene."""
    query, (angle, step), rng = make_query(300, outlier_ratio=0.0, seed=seed), COPIES[name], np.random.default_rng(seed)
    axis, centre = rng.normal(size=3), np.median(query.points3d, axis=0)
    turn = rotation_from_vector(angle * axis / np.linalg.norm(axis))
    order = query.points2d[:, 0] if name == "moved poster" else rng.random(300)
    moved = (query.points3d - centre) @ turn.T + centre + step * query.points3d.std(axis=0) * rng.normal(size=3)
    points3d = np.where((order < np.quantile(order, share))[:, None], moved, query.points3d)
    return query, points3d


@pytest.mark.parametrize("name", COPIES)
def test_absolute_poses_have_rivals(name):
    sure_and_wrong = 0
    for seed in range(8):
        query, points3d = copied(name, seed, 0.62)
        found = estimate_absolute_pose(query.points2d, points3d, query.camera)
        wrong = absolute_pose_error_deg(found.R, found.t, query.R, query.t, query.points3d) > 5
        sure_and_wrong += wrong and found.confidence > 0.9
        (rival,) = found.rivals
        assert absolute_pose_error_deg(rival.R, rival.t, query.R, query.t, query.points3d) < 5 or not wrong
        assert rival.share == pytest.approx(0.38, abs=0.08)
    assert sure_and_wrong <= 1


def test_one_absolute_pose_has_no_rival_and_is_sure():
    for seed in range(5):
        query = make_query(300, outlier_ratio=0.5, seed=seed)
        found = estimate_absolute_pose(query.points2d, query.points3d, query.camera)
        assert found.rivals == () and found.confidence > 0.9


def with_overlay(seed):
    """Create a moving scene with more static matches in a corner, and as many wrong ones."""
    rng = np.random.default_rng(seed)
    pair = make_hard_pair("depth", rng)
    chosen, size = rng.permutation(len(pair.points1))[:120], np.array([CAMERA.width, CAMERA.height])
    still, wrong = 0.2 * size * rng.uniform(0, 1, (150, 2)), size * rng.uniform(0, 1, (2, 150, 2))
    points1 = np.concatenate([pair.points1[chosen], still, wrong[0]])
    points2 = np.concatenate([pair.points2[chosen], still + 0.3 * rng.normal(size=still.shape), wrong[1]])
    return pair, points1, points2


def test_an_overlay_is_not_taken_for_a_camera_at_rest():
    for seed in range(10):
        pair, points1, points2 = with_overlay(seed)
        found = estimate(points1, points2, CAMERA, CAMERA)
        right = found.kind == "pose" and pose_error_deg(found.R, found.t, pair.R, pair.t) < 5
        assert right or found.confidence < 0.9


def test_matches_that_do_not_move_are_a_rival():
    _, points1, points2 = with_overlay(0)
    problem = Essential.from_pixels(points1, points2, CAMERA, CAMERA)
    still = unmoved(problem, 2 * problem.pixel)
    assert still[120:270].mean() > 0.95 and still[270:].mean() < 0.05
    query = make_query(50, seed=0)
    in_space = Absolute.from_pixels(query.points2d, query.points3d, query.camera)
    assert not unmoved(in_space, 1.0).any()


def test_very_many_matches_have_rivals_of_all_matches():
    points1, points2, first, *_ = both_motions(2)
    rng = np.random.default_rng(0)
    index = np.repeat(np.arange(500), 20)
    for jitter in (0.0, 3.0):  # more matches than the working set: exact copies, and copies with noise
        moved1, moved2 = (points[index] + jitter * rng.normal(size=(len(index), 2)) for points in (points1, points2))
        found = estimate_relative_pose(moved1, moved2, first.camera1, first.camera2)
        assert found.rivals[0].inliers.shape == (len(index),)
        assert found.rivals[0].share > 0.2


def test_an_image_matched_to_itself_has_not_moved(rng):
    points = rng.uniform(0, 1, (300, 2)) * (CAMERA.width, CAMERA.height)
    size = CAMERA.width, CAMERA.height
    wrong = points.copy()
    wrong[:30] = rng.uniform(0, 900, (30, 2))
    for points2 in (points, points + 0.1 * rng.normal(size=points.shape), wrong):
        for more in ({}, {"camera1": CAMERA, "camera2": CAMERA}, {"image_size1": size, "image_size2": size}):
            found = estimate(points, points2, **more)
            assert (found.kind, found.success) == ("rotation", True)
            assert "no motion" in found.reason
            assert found.confidence > 0.99 and found.rotation_confidence > 0.99
            np.testing.assert_array_equal(found.R, np.eye(3))
            assert found.num_inliers >= 269 and found.t is None
            assert type(found).from_dict(found.to_dict(full=True)).kind == "rotation"


def test_a_camera_that_hardly_moved_has_a_rotation():
    kinds = []
    for seed in range(10):
        pair = make_hard_pair("tiny baseline", np.random.default_rng([seed, 5]))
        found = estimate(pair.points1, pair.points2, pair.camera, pair.camera)
        kinds.append(found.kind)
        if found.kind == "rotation":
            assert pose_error_deg(found.R, [1, 0, 0], pair.R, [1, 0, 0]) < 5
            assert found.t is None and found.H is not None
    assert kinds.count("rotation") >= 7


def relief(seed, share=1.0, size=(1024.0, 768.0), depth=0.05, focal=920.0):
    """Make pixels in a region of the image, 3D points in relief on a plane, and their pose."""
    rng = np.random.default_rng(seed)
    camera = Camera("SIMPLE_PINHOLE", (focal, 512, 384), 1024, 768)
    points2d = rng.uniform(0, 1, (300, 2)) * size + (0.2, 0.4) * (np.array([1024.0, 768.0]) - size)
    rays = np.c_[camera.pixels_to_rays(points2d), np.ones(300)]
    seen = rays * (6 / (rays @ (0.3, 0.2, 1.0)) * (1 + depth * rng.normal(size=300)))[:, None]
    R, t = rotation_from_vector(rng.normal(size=3)), rng.normal(size=3)
    wrong = rng.random(300) > share
    points3d = np.where(wrong[:, None], rng.permutation(seen), seen)
    return (points2d + 0.5 * rng.normal(size=(300, 2))).clip(0, (1023, 767)), (points3d - t) @ R, R, t


@pytest.mark.parametrize("given", ["camera", "uncertain camera", "size"])
def test_mirrored_images_have_no_absolute_pose(given):
    camera = Camera("SIMPLE_PINHOLE", (920, 512, 384), 1024, 768)
    cameras = {"camera": camera, "uncertain camera": replace(camera, focal_deviation=0.1), "size": None}
    size = {"image_size": (1024, 768)} if given == "size" else {}
    for seed in range(8):
        points2d, points3d, R, t = relief(seed, share=0.7)
        found = estimate_absolute_pose(points2d, points3d, cameras[given], **size)
        assert found.is_confident() and not found.warnings
        assert absolute_pose_error_deg(found.R, found.t, R, t, points3d) < 5
        flipped = np.array([1023.0, 0.0]) + points2d * (-1, 1)
        mirrored = estimate_absolute_pose(flipped, points3d, cameras[given], **size)
        assert not mirrored.is_confident()
        assert mirrored.success and "mirrored" in mirrored.warnings[0]


def test_a_pose_with_a_stronger_rival_is_not_trusted():
    for seed in range(10):
        query, rng = make_query(1000, outlier_ratio=0.0, seed=seed), np.random.default_rng(seed)
        R = rotation_from_vector(rng.uniform(-0.3, 0.3, 3)) @ query.R
        rays = np.c_[query.camera.pixels_to_rays(query.points2d), np.ones(1000)] * rng.uniform(3, 12, (1000, 1))
        points3d = np.where(np.arange(1000)[:, None] < 400, (rays - query.t - 1) @ R, query.points3d)
        points3d[900:] = rng.permutation(points3d[900:])
        found = estimate_absolute_pose(query.points2d, points3d, query.camera)
        right = absolute_pose_error_deg(found.R, found.t, query.R, query.t, points3d) < 5
        assert right or not found.is_confident(), seed
        assert found.confidence < 0.9


def test_random_matches_and_five_inliers_are_not_trusted(rng):
    camera = Camera("SIMPLE_PINHOLE", (900, 512, 384), 1024, 768)
    for count in (30, 60, 200):
        for _ in range(20):
            found = estimate_absolute_pose(rng.uniform(0, 767, (count, 2)), rng.normal(size=(count, 3)), camera)
            assert not found.is_confident()
    query = make_query(5, outlier_ratio=0.0, seed=3)
    assert not estimate_absolute_pose(query.points2d, query.points3d, query.camera).is_confident()


def test_a_patch_of_the_image_does_not_determine_an_unknown_camera():
    """A flat patch has the same image for every focal length, so the distance to it is as uncertain as the camera."""
    wrong = 0
    for seed in range(8):
        points2d, points3d, R, t = relief(seed, size=(40.0, 40.0), depth=0.0, focal=600.0)
        found = estimate_absolute_pose(points2d, points3d, image_size=(1024, 768))
        wrong += absolute_pose_error_deg(found.R, found.t, R, t, points3d) > 5
        assert not found.is_confident()
    assert wrong > 4

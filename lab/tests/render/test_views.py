"""The renderer: both views show the same texture at a surface point, and features give the true pose."""

import numpy as np
import pytest

import caransac
from caransac.camera import Camera
from caransac.geometry import pose_error_deg
from caransac_lab import render


@pytest.fixture(scope="module")
def scene():
    return render.make_scene(3)


CAMERA = Camera("SIMPLE_PINHOLE", (480.0, 159.5, 119.5), 320, 240)
POSES = [render.look_at(centre, render.TARGET) for centre in ([-0.4, -6.5, 2.5], [0.6, -6.8, 2.2])]


def bilinear(image, points):
    x, y = np.floor(points).astype(int).T
    fx, fy = (points - np.floor(points)).T
    rows = [image[y + j, x] * (1 - fx) + image[y + j, x + 1] * fx for j in (0, 1)]
    return rows[0] * (1 - fy) + rows[1] * fy


def test_a_surface_point_has_the_same_texture_in_both_views(scene):
    (R1, t1), (R2, t2) = POSES
    grey1, grey2 = (render.render(scene, CAMERA, R, t).mean(axis=2) for R, t in POSES)
    depth1, depth2 = (render.render_depth(scene, CAMERA, R, t) for R, t in POSES)
    pixels = np.stack(np.meshgrid(np.arange(320.0), np.arange(240.0)), axis=-1).reshape(-1, 2)
    world = (np.c_[CAMERA.pixels_to_rays(pixels), np.ones(len(pixels))] * depth1.reshape(-1, 1) - t1) @ R1
    moved = world @ R2.T + t2
    projected = CAMERA.rays_to_pixels(moved[:, :2] / moved[:, 2:])
    inside = np.all((projected > 1) & (projected < [317, 237]), axis=1)
    seen = np.flatnonzero(inside)[np.abs(bilinear(depth2, projected[inside]) - moved[inside, 2]) < 0.01]
    assert len(seen) > 0.7 * len(pixels)

    def disagreement(shift):
        return np.abs(bilinear(grey2, projected[seen] + shift) - grey1.ravel()[seen]).mean()

    assert disagreement(0.0) < 6
    for shift in ([0.5, 0], [-0.5, 0], [0, 0.5], [0, -0.5]):  # a shift of the pixel centre by half a pixel fits worse
        assert disagreement(np.array(shift)) > 1.3 * disagreement(0.0)


def test_the_depth_of_a_floor_matches_its_formula(scene):
    R, t = render.look_at([0.0, -4.0, 0.5], [0.0, 0.0, 0.5])  # a level camera, so the horizon is the middle row
    depth = render.render_depth(scene[:1], CAMERA, R, t)
    assert np.all(np.isinf(depth[:119]))
    rows = np.arange(170, 240)
    np.testing.assert_allclose(depth[rows, 100], 0.5 * 480 / (rows - 119.5), rtol=1e-12)


def test_the_nearest_surface_is_visible(scene):
    depth = render.render_depth(scene, CAMERA, *POSES[0])
    alone = np.stack([render.render_depth([face], CAMERA, *POSES[0]) for face in scene])
    np.testing.assert_allclose(depth, alone.min(axis=0))


def test_views_share_a_scene_and_have_their_cameras():
    views = render.render_views(3, width=160, height=120, seed=5, arc_deg=20)
    assert [image.shape for image in views.images] == [(120, 160, 3)] * 3
    assert all(image.dtype == np.uint8 and image.std() > 20 for image in views.images)
    assert (views.camera.width, views.camera.height) == (160, 120)
    for R in views.rotations:
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1)
    centres = -np.einsum("vji,vj->vi", views.rotations, views.translations)
    R, t = views.relative_pose(0, 2)
    direction = views.rotations[2] @ (centres[0] - centres[2])
    np.testing.assert_allclose(t, direction / np.linalg.norm(direction), atol=1e-12)
    np.testing.assert_allclose(R @ views.rotations[0], views.rotations[2], atol=1e-12)


@pytest.mark.slow
def test_the_seed_decides_everything():
    first, again, other = (render.render_pair(seed, width=80, height=60) for seed in (1, 1, 2))
    assert np.array_equal(first.image1, again.image1)
    assert np.array_equal(first.R, again.R)
    assert not np.array_equal(first.image1, other.image1)


@pytest.mark.slow
def test_sift_and_the_estimator_recover_the_pose():
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV")
    pair = render.render_pair(seed=4)
    found = [
        cv2.SIFT_create(2000).detectAndCompute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None)
        for image in (pair.image1, pair.image2)
    ]
    nearest = cv2.BFMatcher().knnMatch(found[0][1], found[1][1], k=2)
    points1 = np.array([found[0][0][best.queryIdx].pt for best, _ in nearest])
    points2 = np.array([found[1][0][best.trainIdx].pt for best, _ in nearest])
    ratios = np.array([best.distance / second.distance for best, second in nearest])
    result = caransac.estimate_relative_pose(
        points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio"
    )
    assert result.num_inliers > 300
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.2


@pytest.mark.parametrize("wrong", [{"num_views": 0}, {"width": 1}, {"height": 0}])
def test_impossible_views_are_refused(wrong):
    with pytest.raises(ValueError, match="must be a whole number from"):
        render.render_views(**wrong)


def test_a_camera_without_a_size_or_with_a_distorted_lens_is_refused(scene):
    for camera in (Camera("SIMPLE_PINHOLE", (1, 0, 0)), Camera("SIMPLE_RADIAL", (90, 5, 5, 0.1), 10, 10)):
        with pytest.raises(ValueError, match="camera must have"):
            render.render(scene, camera, *POSES[0])

"""The public calls on hopeless data, special scenes and wrong arguments: a failure with a reason, or a ValueError."""

import dataclasses

import cv2
import numpy as np
import pytest
from estimates import METHODS, solve

from caransac import (
    Camera,
    Matches,
    Options,
    estimate,
    estimate_absolute_pose,
    estimate_camera,
    estimate_fundamental,
    estimate_homography,
    estimate_relative_pose,
    estimate_relative_pose_from_rays,
    matches_from,
)
from caransac.geometry import (
    pose_error_deg,
    rotation_angle_deg,
)
from caransac.synthetic import make_pair


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["pose", "fundamental"])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("empty", "too_few_points"),
        ("four points", "too_few_points"),
        ("all equal", "degenerate"),
        ("all collinear", "degenerate"),
        ("two distinct points", "degenerate"),
        ("minimal", "no_consensus"),
        ("nothing matches", "no_consensus"),
    ],
)
def test_hopeless_data_is_a_failure_with_a_reason(rng, problem, kind, reason, method):
    size = 5 if problem == "pose" else 7
    pair = make_pair(60, outlier_ratio=0.0, seed=2)
    points1, points2 = pair.points1, pair.points2
    if kind == "empty":
        points1, points2 = points1[:0], points2[:0]
    elif kind == "four points":
        points1, points2 = points1[:4], points2[:4]
    elif kind == "all equal":
        points1, points2 = np.tile(points1[:1], (60, 1)), np.tile(points2[:1], (60, 1))
    elif kind == "all collinear":
        points1, points2 = (np.array([10.0, 20]) + np.arange(60)[:, None] * (8, 5) for _ in range(2))
    elif kind == "two distinct points":
        points1, points2 = points1[np.arange(60) % 2], points2[np.arange(60) % 2]
    elif kind == "minimal":
        points1, points2 = points1[:size], points2[:size]
    elif kind == "nothing matches":
        points1, points2 = rng.uniform(0, 760, (2, 9, 2))
    options = Options(method=method, max_error_px=1e-6 if kind == "nothing matches" else 1.0)
    result = solve(problem, dataclasses.replace(pair, points1=points1, points2=points2), options=options)
    assert not result.success
    assert result.stop_reason == reason
    assert result.inliers.shape == (len(points1),)
    assert not result.inliers.any()
    assert result.num_inliers == 0
    assert result.consensus == 0
    model = [result.R, result.t, result.E] if problem == "pose" else [result.F]
    assert all(part is None for part in model)
    if method == "ca-ransac":
        assert result.probabilities.shape == (len(points1),)
        assert np.isfinite(result.probabilities).all()
    else:
        assert result.probabilities is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["pose", "fundamental"])
@pytest.mark.parametrize("kind", ["planar", "pure rotation", "identical images", "clusters"])
def test_special_scenes_never_raise(problem, kind, method):
    pair = make_pair(300, outlier_ratio=0.0, noise_px=0.2, seed=2)
    if kind == "planar":
        H = np.array([[1.1, 0.05, 10], [-0.03, 0.98, 5], [1e-5, 2e-5, 1]])
        mapped = np.c_[pair.points1, np.ones(300)] @ H.T
        points2 = mapped[:, :2] / mapped[:, 2:]
    elif kind == "pure rotation":
        mapped = np.c_[pair.points1, np.ones(300)] @ (pair.camera2.K @ pair.R @ np.linalg.inv(pair.camera1.K)).T
        points2 = mapped[:, :2] / mapped[:, 2:]
    elif kind == "identical images":
        points2 = pair.points1
    else:
        pair.points1[:280], pair.points2[:280] = pair.points1[0], pair.points2[0]
        points2 = pair.points2
    result = solve(problem, dataclasses.replace(pair, points2=points2), options=Options(method=method))
    model = result.E if problem == "pose" else result.F
    assert (model is not None) == result.success
    assert model is None or np.isfinite(model).all()
    if kind == "pure rotation" and problem == "pose":
        assert rotation_angle_deg(result.R @ pair.R.T) < 0.1, "the rotation is determined, the translation is not"


def test_a_planar_scene_has_one_of_its_two_poses():
    pair = make_pair(400, outlier_ratio=0.0, noise_px=0.0, seed=2)
    rays1 = np.c_[pair.camera1.pixels_to_rays(pair.points1), np.ones(400)]
    on_plane = rays1 * (5 / (rays1 @ [0.2, -0.1, 1.0]))[:, None]
    moved = on_plane @ pair.R.T + pair.t
    points2 = pair.camera2.rays_to_pixels(moved[:, :2] / moved[:, 2:])
    result = estimate_relative_pose(pair.points1, points2, pair.camera1, pair.camera2)
    H = pair.R + np.outer(pair.t, [0.2, -0.1, 1.0]) / 5
    _, rotations, translations, _ = cv2.decomposeHomographyMat(H, np.eye(3))
    errors = [pose_error_deg(result.R, result.t, R, t.ravel()) for R, t in zip(rotations, translations, strict=True)]
    assert min(errors) < 0.01


BAD_ARGUMENTS = {
    "points1": [
        [[1, 2], [3]] * 5,
        np.ma.masked_array(np.zeros((10, 2)), mask=True),
        np.zeros((10, 3)),
        np.zeros(20),
        np.zeros((2, 10)),
        [["a", "b"]] * 10,
        np.zeros((10, 2), complex),
        np.full((10, 2), np.finfo(np.longdouble).max),  # does not fit into a double, if long double is larger
        None,
    ],
    "points2": [np.zeros((9, 2)), np.full((10, 2), np.nan), np.full((10, 2), np.inf)],
    "scores": [np.zeros(9), np.zeros((10, 1)), np.full(10, np.nan), "good"],
    "score_kind": ["distance", 3],
    "options": [{"rounds": 4}, 4],
}


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_ARGUMENTS.items() for value in values]
)
def test_a_callers_mistake_names_the_argument(rng, problem, name, value):
    arguments = {"points1": rng.uniform(0, 100, (10, 2)), "points2": rng.uniform(0, 100, (10, 2)), name: value}
    if problem == "pose":
        arguments |= {"camera1": np.eye(3), "camera2": np.eye(3)}
    call = estimate_relative_pose if problem == "pose" else estimate_fundamental
    with pytest.raises(ValueError, match=name):
        call(**arguments)


EMPTY = [[], (), np.array([]), np.zeros((0, 2)), np.zeros(0, int)]


@pytest.mark.parametrize("points", EMPTY, ids=lambda points: f"{type(points).__name__} {np.shape(points)}")
@pytest.mark.parametrize("cameras", [{}, {"camera1": np.eye(3), "camera2": np.eye(3)}], ids=["unknown", "known"])
def test_a_list_of_no_matches_is_hopeless_and_no_mistake(points, cameras):
    """The value of ``[keypoint.pt for keypoint in ...]`` for an empty list."""
    calls = [estimate] if not cameras else [estimate, estimate_relative_pose]
    results = [call(points, points, **cameras) for call in calls]
    results += [estimate_homography(points, points), estimate_fundamental(points, points)]
    for result in results:
        assert (result.success, result.stop_reason, len(result.inliers)) == (False, "too_few_points", 0)
    with pytest.raises(ValueError, match="same length"):
        estimate(points, np.zeros((3, 2)), **cameras)


def test_no_rays_and_no_points_in_space_are_hopeless():
    assert estimate_relative_pose_from_rays([], []).stop_reason == "too_few_points"
    assert estimate_absolute_pose([], [], np.eye(3)).stop_reason == "too_few_points"


def test_a_text_is_not_a_camera_and_the_error_names_the_parser():
    with pytest.raises(ValueError, match=r"camera2: must be a camera, not a text; Camera.from_text\('1200,512,384'\)"):
        estimate(np.zeros((10, 2)), np.zeros((10, 2)), np.eye(3), "1200,512,384")


@pytest.mark.parametrize("camera", ["camera1", "camera2"])
def test_a_bad_camera_is_named(camera):
    cameras = {"camera1": np.eye(3), "camera2": np.eye(3)} | {camera: np.eye(2)}
    with pytest.raises(ValueError, match=camera):
        estimate_relative_pose(np.zeros((10, 2)), np.zeros((10, 2)), **cameras)


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_coinciding_points_are_degenerate(problem):
    pair = make_pair(100)
    tiny = dataclasses.replace(pair, points1=pair.points1 * 1e-300, points2=pair.points2 * 1e-300)
    assert solve(problem, tiny).stop_reason == "degenerate"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["pose", "fundamental"])
@pytest.mark.parametrize("size", [1e4, 1e6, 1e9, 1e11])
def test_one_absurd_match_changes_little(problem, size, method):
    pair = make_pair(800, outlier_ratio=0.4, seed=3)
    expected = solve(problem, pair, options=Options(method=method)).num_inliers
    pair.points1[17] = (size, -size)
    assert solve(problem, pair, options=Options(method=method)).num_inliers > 0.95 * expected


@pytest.mark.parametrize("size", [1e4, 1e6, 1e9, 1e11])
@pytest.mark.parametrize("known", [False, True], ids=["unknown cameras", "known cameras"])
def test_one_absurd_match_does_not_change_the_kind(known, size):
    """A match a million pixels away once made the other matches look unmoved, with a confidence of one."""
    pair = make_pair(800, outlier_ratio=0.4, seed=3)
    cameras = (pair.camera1, pair.camera2) if known else ()
    for points1 in (pair.points1, pair.points2):  # the second case matches an image to itself
        expected = estimate(points1, pair.points2, *cameras)
        absurd = points1.copy()
        absurd[17] = (size, -size)
        found = estimate(absurd, pair.points2, *cameras)
        assert (found.kind, found.reason) == (expected.kind, expected.reason)
        assert found.num_inliers > 0.95 * expected.num_inliers
    assert expected.kind == "rotation" and expected.num_inliers == 800


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_success_means_consensus(problem, method):
    size = 5 if problem == "pose" else 7
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(size, 30))
        points1 = rng.uniform(300, 400, (n, 2))
        points2 = points1 + rng.normal(size=(n, 2)) * rng.choice([0, 1e-6, 0.5, 30])
        pair = dataclasses.replace(make_pair(10), points1=points1, points2=points2)
        result = solve(problem, pair, options=Options(method=method, rounds=1, samples_per_round=32))
        assert not result.success or (result.num_inliers > size and result.consensus > 0)


@pytest.mark.parametrize("problem", ["pose", "fundamental"])
def test_scores_need_a_kind(problem):
    pair = make_pair(100)
    with pytest.raises(ValueError, match="score_kind must be given with scores") as raised:
        solve(problem, pair, scores=pair.scores)
    assert '"ratio" (lower is better) or "confidence" (higher is better)' in str(raised.value)
    assert "\n" not in str(raised.value)
    assert solve(problem, pair, score_kind="ratio").success  # score_kind without scores is allowed


SIZE = (1280, 960)


def sized(pair, size, **more):
    return estimate_relative_pose(pair.points1, pair.points2, image_size1=SIZE, image_size2=size, **more)


@pytest.mark.parametrize("size", [(640, 480), (960, 1280), (1000, 960), (1280, 700)])
def test_sizes_that_do_not_contain_the_points_raise(rng, size):
    pair = make_pair(200, outlier_ratio=0.3, seed=3)
    pair = dataclasses.replace(pair, points2=rng.uniform(0, 1, (200, 2)) * SIZE)
    calls = [
        lambda: sized(pair, size),
        lambda: estimate(pair.points1, pair.points2, image_size1=SIZE, image_size2=size),
        lambda: estimate_fundamental(pair.points1, pair.points2, image_size1=SIZE, image_size2=size),
        lambda: estimate_camera([(pair.points2, pair.points1)], size),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"image_size.=.*does not contain points") as error:
            call()
        assert ("width and height are swapped" in str(error.value)) == (size == SIZE[::-1])


def test_sizes_may_exclude_a_few_points_or_small_distances(rng):
    pair = make_pair(300, outlier_ratio=0.0, seed=4)
    near = rng.uniform(0, 1, (300, 2)) * (1284, 964) - 2  # some keypoints are slightly outside, as after undistortion
    near[:9] *= 1e5  # absurd keypoints are outliers
    sized(dataclasses.replace(pair, points2=near), SIZE)
    sized(dataclasses.replace(pair, points1=pair.points1[:0], points2=pair.points2[:0]), (1, 1))
    with pytest.raises(ValueError, match="swapped"):  # few points are outside, but all fit the swapped size
        sized(dataclasses.replace(pair, points2=rng.uniform(0, 1, (300, 2)) * (480, 500)), (640, 480))
    # With a known camera, the image size is not used.
    estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, image_size1=(9, 9))


FLAT = np.array([[800.0, 0, 512], [0, 800, 384], [0, 0, 1]])
WRONG_CAMERAS = {
    "normalised points": (
        FLAT,
        r"points.* look normalised: they lie between .*, but camera.? is in pixels \(focal length 800\)",
    ),
    "normalised points, size": (None, r"points.* look normalised: .* image_size.?=\(1024, 768\) is in pixels"),
    "no calibration": (np.eye(3), r"camera.? has a focal length of 1, but points.* lie between .* in pixels, too"),
    "half the size": (Camera.from_matrix(FLAT / 2 + np.diag([0, 0, 0.5]), width=512, height=384), "does not contain"),
    "swapped": (
        Camera.from_matrix(FLAT, width=768, height=1024),
        "camera.? of 768 x 1024 .* width and height are swap",
    ),
}


@pytest.mark.parametrize("what", WRONG_CAMERAS)
def test_cameras_that_cannot_have_taken_the_points_raise(rng, what):
    camera, message = WRONG_CAMERAS[what]
    pair = make_pair(200, outlier_ratio=0.3, seed=3)
    points1, points2 = pair.points1, rng.uniform(0, 1, (200, 2)) * (1024, 768)
    if what.startswith("normalised"):
        points1, points2 = ((points - 400) / 800 for points in (points1, points2))
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768)} if camera is None else {}
    calls = [
        lambda: estimate_relative_pose(points1, points2, camera, camera, **sizes),
        lambda: estimate(points1, points2, camera, camera, **sizes),
        lambda: estimate_absolute_pose(points2, np.zeros((200, 3)), camera, image_size=sizes.get("image_size1")),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_cameras_for_normalised_or_centred_points_are_accepted():
    pair = make_pair(300, outlier_ratio=0.3, seed=4)
    points = pair.points1, pair.points2
    rays = [pair.camera1.pixels_to_rays(each) for each in points]
    assert estimate_relative_pose(*rays, np.eye(3), np.eye(3)).is_confident()
    centred = dataclasses.replace(pair.camera1, params=(pair.camera1.fx, 0, 0))
    moved = [each - pair.camera1.intrinsics[2:] for each in points]
    assert estimate_relative_pose(*moved, centred, centred).is_confident()


@pytest.mark.parametrize("what", ["SIFT distances", "Hamming distances", "distances of unit vectors", "similarities"])
def test_values_that_are_not_ratios_raise(rng, what):
    pair = make_pair(200, outlier_ratio=0.3, seed=5)
    scores = {
        "SIFT distances": rng.uniform(40, 400, 200),
        "Hamming distances": rng.integers(0, 120, 200),
        "distances of unit vectors": rng.uniform(0.3, 1.4, 200),
        "similarities": rng.uniform(-0.3, 1, 200),
    }[what]
    for call in (estimate_fundamental, estimate_homography):
        with pytest.raises(ValueError, match="scores must be ratios from 0 to 1"):
            call(pair.points1, pair.points2, scores=scores, score_kind="ratio")
        call(pair.points1, pair.points2, scores=scores, score_kind="confidence")


def test_ratios_of_approximate_neighbours_are_ratios(rng):
    pair = make_pair(200, outlier_ratio=0.3, seed=6)
    scores = np.where(rng.random(200) < 0.02, 1.2, rng.uniform(0, 1, 200))
    assert estimate_fundamental(pair.points1, pair.points2, scores=scores, score_kind="ratio").success


WRONG_SIZES = [
    *((-640, 480), (640, 0), (640.5, 480), (10**7, 480), (np.nan, 480), (np.inf, 480), (True, False)),
    *((640,), (640, 480, 3), "640x480", b"640x480", 640, [], [[640, 480]], {"width": 640}),
]


@pytest.mark.parametrize("size", WRONG_SIZES, ids=repr)
def test_a_size_that_no_image_has_is_refused_by_name(rng, size):
    x1, x2, x3 = rng.uniform(0, 99, (10, 2)), rng.uniform(0, 99, (10, 2)), rng.uniform(1, 2, (10, 3))
    calls = {
        "image_size1": [
            lambda: estimate(x1, x2, image_size1=size, image_size2=(640, 480)),
            lambda: estimate_relative_pose(x1, x2, image_size1=size, image_size2=(640, 480)),
            lambda: estimate_fundamental(x1, x2, image_size1=size, image_size2=(640, 480)),
            lambda: Matches(x1, x2, image_size1=size),
            lambda: Matches.from_arrays({"points1": x1, "points2": x2, "camera1_size": np.array(size)}),
        ],
        "image_size2": [lambda: matches_from(x1, x2, image_size2=size)],
        "image_size": [
            lambda: estimate_absolute_pose(x1, x3, image_size=size),
            lambda: estimate_camera([(x1, x2)], size),
        ],
    }
    if size == [[640, 480]]:  # an adapter removes the batch dimension, and arrays in a file may have any shape
        del calls["image_size2"], calls["image_size1"][-1]
    if size == (640, 0):
        del calls["image_size1"][-1]  # in a file, 0 means an unknown side
    for name, each in calls.items():
        for call in each:
            with pytest.raises(ValueError, match=f"{name}|camera1_size"):
                call()

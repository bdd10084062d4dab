"""`estimate`: one call that finds the kind of geometry of two images."""

import re
from pathlib import Path

import numpy as np
import pytest

import caransac
from caransac import Camera, Options
from caransac.api import estimators, guessed_cameras, same_camera
from caransac.api.any_geometry import RULES
from caransac.geometry import homogeneous, pose_error_deg, rotation_from_vector, sampson_sq
from caransac.robust.pipeline import estimate_model
from caransac_lab.synthetic.hard_scenes import CAMERA, make_hard_pair

SIZE = CAMERA.width, CAMERA.height


def pair_of(kind, seed=0, outlier_ratio=0.3):
    return make_hard_pair(kind, np.random.default_rng([seed, 5]), outlier_ratio)


def kinds_of(scene, **known):
    found = []
    for seed in range(6):
        pair = pair_of(scene, seed)
        cameras = (pair.camera, pair.camera) if known.get("cameras") else ()
        sizes = {"image_size1": SIZE, "image_size2": SIZE} if known.get("sizes") else {}
        found.append(caransac.estimate(pair.points1, pair.points2, *cameras, **sizes))
    return found


def share(results, *kinds):
    return np.mean([result.kind in kinds for result in results])


def test_known_cameras_and_depth_give_a_pose():
    results = kinds_of("depth", cameras=True)
    assert share(results, "pose") == 1
    for seed, result in enumerate(results):
        pair = pair_of("depth", seed)
        assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 2
        assert result.E.shape == result.F.shape == (3, 3)
        assert result.H is None
        distances_sq = sampson_sq(result.F, pair.points1[result.inliers], pair.points2[result.inliers])
        assert np.sqrt(distances_sq.max()) <= result.max_error_px * 1.0001


def test_sizes_and_depth_give_pose_and_focal_lengths():
    results = kinds_of("depth", sizes=True)
    assert share(results, "pose_and_focals") >= 0.8
    focals = [result.camera1.mean_focal for result in results if result.kind == "pose_and_focals"]
    assert np.median(np.abs(np.array(focals) / CAMERA.mean_focal - 1)) < 0.1


def test_depth_without_cameras_gives_a_fundamental_matrix():
    results = kinds_of("depth")
    assert share(results, "fundamental") >= 0.8
    assert all(result.R is None for result in results)


def test_a_plane_gives_a_homography_or_its_only_pose():
    known, unknown = kinds_of("plane", cameras=True), kinds_of("plane")
    assert share(known, "homography", "pose") == 1
    assert share(unknown, "homography") >= 0.8
    for seed, result in enumerate(known):
        pair = pair_of("plane", seed)
        poses = [(result.R, result.t)] if result.kind == "pose" else result.alternatives
        if not poses:  # there is one pose, and its confidence is low
            assert result.epipolar.confidence < 0.5
            poses = [(result.epipolar.R, result.epipolar.t)]
        assert min(pose_error_deg(*pose, pair.R, pair.t) for pose in poses) < 5


def test_the_reason_mentions_the_other_pose_if_most_inliers_are_on_a_plane(rng):
    """The command prints the other pose, which seemed to contradict that "the scene has depth"."""
    poses = []
    for _ in range(20):
        rays = homogeneous(CAMERA.pixels_to_rays(rng.uniform(0, 1, (60, 2)) * SIZE))
        inverse_depths = rays @ (0.2, -0.1, 1.0)
        inverse_depths[:10] *= rng.uniform(0.6, 1.4, 10)
        moved = rays @ rotation_from_vector((0.05, -0.1, 0.02)).T + inverse_depths[:, None] * (0.1, 0.02, -0.08)
        views = [CAMERA.rays_to_pixels(each[:, :2] / each[:, 2:]) for each in (rays, moved)]
        noisy = (view + 0.7 * rng.normal(size=view.shape) for view in views)
        poses.append(caransac.estimate(*noisy, CAMERA.K, CAMERA.K))
    told = ["another pose explains the matches as well" in result.reason for result in poses]
    assert told == [result.kind == "pose" and len(result.alternatives) > 0 for result in poses]
    assert 0 < sum(told) < len(told)


def test_a_turned_camera_gives_a_rotation():
    results = kinds_of("rotation", cameras=True)
    assert share(results, "rotation") >= 0.8
    for seed, result in enumerate(results):
        if result.kind == "rotation":
            assert np.degrees(np.arccos((np.trace(result.R @ pair_of("rotation", seed).R.T) - 1) / 2)) < 0.5
            assert result.t is None
    assert share(kinds_of("rotation"), "homography") >= 0.8


def test_random_matches_give_no_geometry(rng):
    points1, points2 = rng.uniform(0, 1000, (2, 300, 2))
    for cameras in ((CAMERA, CAMERA), ()):
        result = caransac.estimate(points1, points2, *cameras)
        assert result.kind == "none"
        assert not result.success
        assert result.stop_reason in ("unsure", "no_consensus", "degenerate")
        assert not result.inliers.any()
        assert all(getattr(result, name) is None for name in ("R", "t", "E", "F", "H"))


@pytest.mark.parametrize("known", [{}, {"image_size1": SIZE, "image_size2": SIZE}], ids=["nothing", "sizes"])
def test_no_pipeline_runs_twice(known, rng, monkeypatch):
    """Unrelated points require every estimate of the policy, but each problem is estimated only once."""
    asked = []
    for module in (estimators, guessed_cameras, same_camera):
        monkeypatch.setattr(
            module, "estimate_model", lambda problem, *rest: (asked.append(problem), estimate_model(problem, *rest))[1]
        )
    points1, points2 = rng.uniform(0, 1, (2, 200, 2)) * SIZE
    assert caransac.estimate(points1, points2, **known).kind == "none"
    kinds = [(type(problem).__name__, getattr(problem, "shared", None)) for problem in asked]
    assert 2 <= len(kinds) == len(set(kinds)) <= 3


@pytest.mark.parametrize("n", [0, 3, 6])
def test_too_few_matches_give_no_geometry(n):
    points1, points2 = np.random.default_rng(0).uniform(0, 1000, (2, n, 2))
    assert caransac.estimate(points1, points2, CAMERA, CAMERA).kind == "none"


def test_uncertain_cameras_are_refined_with_the_pose():
    pair = pair_of("depth")
    uncertain = Camera("SIMPLE_PINHOLE", (1000.0, 640.0, 480.0), 1280, 960, focal_deviation=0.1)
    result = caransac.estimate(pair.points1, pair.points2, uncertain, uncertain)
    assert result.kind == "pose_and_focals"
    assert abs(result.camera1.mean_focal / 900 - 1) < 0.05


@pytest.mark.parametrize("scene", ["plane", "rotation"])
def test_a_confident_homography_is_preferred_to_an_unsure_fundamental_matrix(scene):
    pair = pair_of(scene)
    found = [caransac.estimate(pair.points1, pair.points2, options=Options(seed=seed)) for seed in range(12)]
    assert share(found, "homography") == 1


def test_lens_distortion_does_not_bend_a_plane():
    pair = pair_of("plane", 1)
    lens = Camera("SIMPLE_RADIAL", (900.0, 640.0, 480.0, -0.2), 1280, 960)
    bent = [lens.rays_to_pixels(CAMERA.pixels_to_rays(points)) for points in (pair.points1, pair.points2)]
    straight = caransac.estimate(pair.points1, pair.points2, CAMERA, CAMERA)
    assert caransac.estimate(*bent, lens, lens).kind == straight.kind


def test_classical_methods_answer_too():
    pair = pair_of("depth")
    result = caransac.estimate(pair.points1, pair.points2, CAMERA, CAMERA, options=Options(method="lm-lo"))
    assert result.kind == "pose"
    assert result.confidence is None


def test_wrong_arguments_are_named():
    points = np.zeros((10, 2))
    with pytest.raises(ValueError, match="camera2"):
        caransac.estimate(points, points, CAMERA)
    with pytest.raises(ValueError, match="score_kind"):
        caransac.estimate(points, points, scores=np.zeros(10))


def test_results_describe_themselves():
    pair = pair_of("depth")
    result = caransac.estimate(pair.points1, pair.points2, CAMERA, CAMERA)
    assert repr(result).startswith("GeometryResult(pose, success")
    assert "depth" in result.reason


def hills(rng):
    """Pixels (300, 2) in both images of a hilly surface, seen by `CAMERA` from two viewpoints."""
    X = np.c_[rng.uniform(-2, 2, (300, 2)), np.zeros(300)]
    X[:, 2] = 6 + np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1])
    turned = X @ rotation_from_vector(np.array([0.02, -0.2, 0.05])).T + [1.2, 0.1, 0.2]
    pixels = [CAMERA.rays_to_pixels(seen[:, :2] / seen[:, 2:]) for seen in (X, turned)]
    return [each + rng.normal(0, 0.3, each.shape) for each in pixels]


@pytest.mark.parametrize("scene", ["hills", "plane", "rotation"])
@pytest.mark.parametrize("known", ["cameras", "sizes", "nothing"])
def test_a_mirrored_image_has_no_geometry_and_is_reported(scene, known, rng):
    points1, points2 = hills(rng) if scene == "hills" else (lambda p: (p.points1, p.points2))(pair_of(scene))
    cameras = (CAMERA, CAMERA) if known == "cameras" else ()
    sizes = {"image_size1": SIZE, "image_size2": SIZE} if known == "sizes" else {}
    assert caransac.estimate(points1, points2, *cameras, **sizes).kind != "none"
    mirrored = [SIZE[0] - 1, 0] + points2 * [-1, 1]
    found = caransac.estimate(points1, mirrored, *cameras, **sizes)
    assert found.kind == "none" and found.R is None and found.confidence == 0
    assert found.epipolar.confidence < 0.5
    assert found.reason == "the matches are mirrored, which no camera sees: is one image flipped?"


def test_a_camera_and_the_size_of_the_other_image_are_enough(rng):
    weak = rng.uniform(0, 600, (2, 40, 2))  # no geometry at all
    for known in (
        {"camera2": CAMERA, "image_size1": SIZE},
        {"camera1": CAMERA, "image_size2": SIZE},
        {"camera2": CAMERA.K, "image_size1": SIZE},
    ):
        assert caransac.estimate(*weak, **known).kind == "none"


def test_the_documents_have_the_rules_in_their_order():
    text = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
    table = text.partition("| rule | answer | if |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [rule.__name__ for rule in RULES]


def seen(K, R, t, points3d):
    images = (points3d @ R.T + t) @ K.T
    return images[:, :2] / images[:, 2:]


def with_outliers(points1, points2, count, rng):
    return (np.r_[points, rng.uniform(0, 1, (count, 2)) * SIZE] for points in (points1, points2))


def test_a_zoom_is_not_reported_as_forward_motion(rng):
    """The camera rolls and zooms out without moving. Keypoints of image 1 are larger and less accurate."""
    zoom = 3.0
    near, far = (np.array([[f, 0, 639.5], [0, f, 479.5], [0, 0, 1]]) for f in (1500, 1500 / zoom))
    points1 = rng.uniform(0, 1, (300, 2)) * SIZE
    rays = np.c_[points1, np.ones(300)] @ np.linalg.inv(near).T
    points2 = seen(far, rotation_from_vector([0.03, -0.02, 0.5]), 0, rays)
    noisy = points1 + rng.normal(0, 0.3 * zoom, (300, 2)), points2 + rng.normal(0, 0.3, (300, 2))
    pair = tuple(with_outliers(*noisy, 200, rng))
    result = caransac.estimate(*pair, image_size1=SIZE, image_size2=SIZE)
    assert result.epipolar.t[2] > 0.9  # the wrong answer of the model with one focal length, with a high confidence
    assert result.epipolar.confidence > 0.5
    assert result.kind == "homography"
    assert "zoomed" in result.reason
    found = np.c_[points1, np.ones(300)] @ result.H.T
    assert np.median(np.linalg.norm(found[:, :2] / found[:, 2:] - points2, axis=1)) < 1
    same = caransac.estimate(*pair, image_size1=SIZE, image_size2=SIZE, same_camera=True)
    assert same.kind == "pose_and_focals"


def test_the_homography_of_a_camera_that_hardly_moved_fits_the_matches(rng):
    """For a shallow, distant scene, the homography of the pure rotation misses all points by the same shift."""
    points1 = rng.uniform(0, 1, (400, 2)) * SIZE
    space = np.c_[points1, np.ones(400)] @ np.linalg.inv(CAMERA.K).T * rng.uniform(9.5, 10.5, (400, 1))
    points2 = seen(CAMERA.K, rotation_from_vector([0.02, -0.05, 0.03]), np.array([0.1, 0.02, 0.03]), space)
    noisy = (points + rng.normal(0, 0.5, (400, 2)) for points in (points1, points2))
    result = caransac.estimate(*with_outliers(*noisy, 200, rng), image_size1=SIZE, image_size2=SIZE)
    assert (result.kind, result.degeneracy) == ("rotation", "planar")
    found = np.c_[points1, np.ones(400)] @ result.H.T
    assert np.median(np.linalg.norm(found[:, :2] / found[:, 2:] - points2, axis=1)) < 1


def test_a_confident_homography_is_returned_if_other_models_are_unsure(rng):
    """The scene is a slanted plane with many wrong matches. By chance, many of them are near epipolar lines."""
    points1 = rng.uniform((100, 100), (900, 600), (50, 2))
    H = np.array([[0.6, 0.25, 80], [-0.1, 0.8, 60], [-4e-4, 1e-4, 1]])
    points2 = seen(H, np.eye(3), 0, np.c_[points1, np.ones(50)])
    noisy = (points + rng.normal(0, 0.7, (50, 2)) for points in (points1, points2))
    scores = np.r_[rng.uniform(0.5, 0.9, 50), rng.uniform(0.8, 1, 2500)]
    pair = with_outliers(*noisy, 2500, rng)
    result = caransac.estimate(*pair, image_size1=SIZE, image_size2=SIZE, scores=scores, score_kind="ratio")
    assert result.epipolar.confidence < 0.5
    assert result.num_inliers < 0.9 * result.epipolar.num_inliers
    assert result.kind == "homography"
    assert result.inliers[:50].mean() > 0.9

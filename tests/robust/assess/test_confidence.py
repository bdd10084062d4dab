"""The confidence: its evidence, and its ability to distinguish right answers from wrong ones."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import caransac
from caransac import Options, estimate_absolute_pose, estimate_fundamental, estimate_relative_pose
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_DISTORTION_DEVIATION
from caransac.geometry import absolute_pose_error_deg, join_pose, pose_error_deg, rotation_from_vector
from caransac.learned.side_information import side_information
from caransac.learned.state_network import StateNetwork, load_network
from caransac.robust.assess.confidence import CONFIDENCE_PARTS, ConfidenceFit
from caransac.robust.assess.evidence import EVIDENCE, inlier_width, outcome_rates, run_evidence
from caransac.robust.assess.limits import ignored_lens_shift, withstands_lenses
from caransac.robust.assess.uncertainty import bent_by, information_of
from caransac.robust.pipeline import adapt, assess, examine
from caransac.robust.problems import Essential, FocalPose, Fundamental
from caransac.robust.records import Estimate, MatchInfo
from caransac.synthetic import make_pair
from caransac_lab.synthetic.hard_scenes import CAMERA, HARD_KINDS, make_hard_pair
from caransac_lab.training.calibration import products

AUTO = Options(max_error_px="auto")


def estimate(pair, scores=None):
    return estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=scores, score_kind="ratio"
    )


def answer(problem, network, scores):
    """Run the pipeline with a network."""
    side = side_information(problem.correspondences, problem.spreads, scores, "ratio")
    return adapt(problem, network, side, MatchInfo(scores), Options())


def evidence(network, problem, found):
    return run_evidence(network, problem, found, examine(problem, network, found, Options()), Options())


def confidence(network, problem, found):
    return assess(problem, network, found, Options()).confidence


def test_the_shipped_weights_carry_the_confidence():
    weights = load_network("default").weights
    numbers = len(EVIDENCE)
    for problem in ("essential", "fundamental", "focal", "homography"):
        mean, scale, weight, bias = (weights[f"confidence.{problem}.{part}"] for part in CONFIDENCE_PARTS)
        assert mean.shape == scale.shape == (numbers,)
        used = np.count_nonzero(scale)
        assert (used == numbers) == (problem == "essential")
        assert weight.shape == (used + used * (used + 1) // 2,)
        assert np.isfinite(bias)
    for problem in ("essential", "focal"):
        assert weights[f"rotation_confidence.{problem}.mean"].shape == (numbers,)


@pytest.mark.parametrize("seed", range(4))
def test_right_answers_are_trusted_and_answers_from_noise_are_not(seed, rng):
    pair = make_pair(1000, outlier_ratio=0.5, seed=seed)
    assert estimate(pair, pair.scores).confidence > 0.9
    shuffled = rng.permutation(pair.points2)
    result = estimate_relative_pose(
        pair.points1, shuffled, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio"
    )
    assert result.confidence < 0.3
    fundamental = estimate_fundamental(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio")
    noise = estimate_fundamental(pair.points1, shuffled, scores=pair.scores, score_kind="ratio")
    assert noise.confidence < fundamental.confidence
    assert noise.confidence < 0.3


def turned(baseline, seed):
    """Estimate the pose of a camera that rotated and moved by a share of the depth; a third of the matches is wrong."""
    rng = np.random.default_rng(seed)
    camera = Camera("SIMPLE_PINHOLE", (600, 320, 240))  # without a size, because some points are outside image 1
    points1 = rng.uniform((0, 0), (640, 480), (900, 2))
    depths = rng.uniform(4, 12, 900)
    rays = np.c_[camera.pixels_to_rays(points1), np.ones(900)] * depths[:, None]
    R, t = rotation_from_vector(rng.normal(0, 0.1, 3)), rng.normal(size=3)
    t /= np.linalg.norm(t)
    seen = rays @ R.T + baseline * depths.mean() * t
    points2 = camera.rays_to_pixels(seen[:, :2] / seen[:, 2:]) + rng.normal(0, 0.4, (900, 2))
    points2[600:] = rng.uniform((0, 0), (640, 480), (300, 2))
    return estimate_relative_pose(points1 + rng.normal(0, 0.4, (900, 2)), points2, camera, camera), R, t


def test_cameras_that_hardly_moved_are_not_trusted():
    for baseline, low, high in ((0.0, 0.0, 0.3), (0.03, 0.8, 1.0), (0.1, 0.9, 1.0)):
        confidences, right = [], []
        for seed in range(12):
            result, R, t = turned(baseline, seed)
            confidences.append(result.confidence)
            right.append(pose_error_deg(result.R, result.t, R, t) < 5)
        assert low <= np.mean(confidences) <= high
        assert abs(np.mean(confidences) - np.mean(right)) < 0.2


def test_unknown_lenses_limit_the_confidence():
    """Unknown lens distortion changes the estimated direction if the camera hardly moved."""
    limit = np.radians(5)
    for shift, sure in ((limit, 0.841), (limit / 2, 0.977), (1e-5, 1.0)):
        assert withstands_lenses(shift, limit) == pytest.approx(sure, abs=1e-3)
    near, far = (
        [
            estimate_relative_pose(pair.points1, pair.points2, pair.camera, pair.camera).confidence
            for pair in (make_hard_pair(kind, np.random.default_rng([seed, 3])) for seed in range(6))
        ]
        for kind in ("near rotation", "depth")
    )
    assert np.mean(near) < 0.8 < 0.9 < np.mean(far)


def test_the_predicted_shift_of_a_lens_agrees_with_a_refinement(rng):
    """Compared to first order with a refinement on distorted points."""
    pair = make_hard_pair("depth", rng)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera, pair.camera)
    network = load_network("default")
    found = answer(problem, network, None)
    said = evidence(network, problem, found)
    shifts = []
    for k1 in (-UNKNOWN_DISTORTION_DEVIATION, UNKNOWN_DISTORTION_DEVIATION):
        bent = bent_by(problem, k1)
        direction = answer(bent, network, None).model[:, 3]
        shifts.append(np.arccos(np.clip(direction @ found.model[:, 3], -1, 1)))
        rays = pair.camera.pixels_to_rays(pair.points1)
        np.testing.assert_allclose(bent.points1, rays * (1 + k1 * np.sum(rays**2, axis=1, keepdims=True)))
    assert ignored_lens_shift(problem, found, said) == pytest.approx(max(shifts), rel=0.5)
    said = replace(said, lens_shift=np.log(1e-4))
    assert ignored_lens_shift(problem, found, said) < 2e-4, "too small for a closer test"


def test_failures_have_confidence_zero_and_classical_methods_have_none():
    pair = make_pair(100, seed=0)
    cameras = pair.camera1, pair.camera2
    failed = estimate_relative_pose(pair.points1[:3], pair.points2[:3], *cameras)
    assert not failed.success
    assert failed.confidence == 0
    classical = estimate_relative_pose(pair.points1, pair.points2, *cameras, options=Options(method="lm-lo"))
    assert classical.confidence is None


def test_weights_without_a_confidence_have_confidence_none():
    pair = make_pair(300, seed=0)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    shipped = load_network("default")
    network = StateNetwork({k: v for k, v in shipped.weights.items() if "confidence" not in k})
    found = answer(problem, network, pair.scores)
    assert confidence(network, problem, found) is None
    numbers = evidence(network, problem, found).numbers
    assert numbers.shape == (len(EVIDENCE),)
    assert np.isfinite(numbers).all()  # with exact cameras and two images, all evidence is measured
    failed = Estimate(model=None, stop_reason="degenerate", num_hypotheses=0, max_error=1.0)
    assert confidence(network, problem, failed) == 0


def test_weights_of_another_version_have_no_confidence():
    pair = make_pair(300, seed=0)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    shipped = load_network("default")
    fewer = {"confidence.essential.mean": shipped.weights["confidence.essential.mean"][:8]}
    network = StateNetwork({**shipped.weights, **fewer})
    assert confidence(network, problem, answer(problem, network, pair.scores)) is None
    assert confidence(shipped, problem, answer(problem, shipped, pair.scores)) > 0.5


def test_extreme_evidence_counts_as_the_most_extreme_known():
    mean, scale = np.zeros(2), np.ones(2)
    assert np.array_equal(products(np.array([100.0, -1]), mean, scale), products(np.array([2.5, -1]), mean, scale))
    assert products(np.array([[1.0, 2.0]]), mean, scale).tolist() == [[1, 2, 1, 2, 4]]


def test_a_fit_needs_all_evidence_that_it_was_fitted_to(rng):
    mean, scale, weight = np.zeros(3, np.float32), np.array([1.0, 0.0, 2.0], np.float32), rng.normal(size=5)
    fit = ConfidenceFit.of(mean, scale, weight.astype(np.float32), np.float32(0.0))
    assert fit.probability(np.array([0.5, np.nan, 0.1])) == fit.probability(np.array([0.5, 3.0, 0.1]))
    assert fit.probability(np.array([0.5, 1.0, np.nan])) is None


def hills(rng):
    """Create matches of a smooth surface with depth, some of them wrong."""
    rays = np.c_[CAMERA.pixels_to_rays(rng.uniform(0, 1, (500, 2)) * (CAMERA.width, CAMERA.height)), np.ones(500)]
    points = rays * (4 + np.sin(4 * rays[:, :1]) + np.cos(5 * rays[:, 1:2]))
    moved = points @ rotation_from_vector([0.03, -0.1, 0.02]).T + [1.0, 0.2, 0.3]
    points1, points2 = (
        CAMERA.rays_to_pixels(each[:, :2] / each[:, 2:]) + 0.3 * rng.normal(size=(500, 2)) for each in (points, moved)
    )
    inside = np.all([((p >= 0) & (p < (CAMERA.width, CAMERA.height))).all(axis=1) for p in (points1, points2)], axis=0)
    points1, points2 = points1[inside], points2[inside]
    points2[::5] = rng.permutation(points2[::5])
    return points1, points2


@pytest.mark.parametrize("told", ["cameras", "sizes", "nothing"])
def test_mirrored_images_are_not_trusted(told):
    for seed in range(3):
        points1, points2 = hills(np.random.default_rng(seed))
        mirrored = [CAMERA.width - 1, 0] + points2 * [-1, 1]
        if told == "nothing":
            found, other = (estimate_fundamental(points1, points) for points in (mirrored, points2))
        else:
            size = CAMERA.width, CAMERA.height
            given = (
                {"camera1": CAMERA, "camera2": CAMERA}
                if told == "cameras"
                else {"image_size1": size, "image_size2": size}
            )
            found, other = (estimate_relative_pose(points1, points, **given) for points in (mirrored, points2))
        assert found.confidence < 0.5 < 0.9 < other.confidence
        assert other.mirrored_share < 0.2 and other.warnings == ()
        assert found.mirrored_share > 0.6
        assert "is one image flipped?" in found.warnings[0]


def test_absolute_poses_of_a_small_patch_are_trusted():
    """All right matches are within 40 px. The noise is large relative to their extent, but the pose is precise."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        R, t = rotation_from_vector(rng.normal(size=3)), rng.normal(size=3)
        pixels = rng.uniform(0.1, 0.9, 2) * (CAMERA.width, CAMERA.height) + rng.uniform(-20, 20, (200, 2))
        seen = np.c_[CAMERA.pixels_to_rays(pixels), np.ones(200)] * rng.uniform(2, 6, (200, 1))
        points3d = (seen - t) @ R
        found = estimate_absolute_pose(pixels + 0.5 * rng.normal(size=pixels.shape), points3d, CAMERA)
        assert absolute_pose_error_deg(found.R, found.t, R, t, points3d) < 5
        assert found.confidence > 0.9


def test_the_estimator_evaluates_the_fit_that_was_trained(rng):
    """The fit uses `products`; the estimator evaluates it as a quadratic form."""
    mean, scale, weight = (rng.normal(size=n).astype(np.float32) for n in (4, 4, 14))
    fit = ConfidenceFit.of(mean, np.exp(scale), weight, np.float32(0.3))
    for numbers in rng.normal(size=(20, 4)):
        log_odds = products(numbers, mean, np.exp(scale)) @ weight + np.float32(0.3)
        assert fit.probability(numbers) == pytest.approx(1 / (1 + np.exp(-log_odds)), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("outlier_ratio", [0.0, 0.5])
@pytest.mark.parametrize("kind", HARD_KINDS)
def test_hard_scenes_are_not_trusted_wrongly(kind, outlier_ratio):
    trusted_wrongly = 0
    for seed in range(20):
        pair = make_hard_pair(kind, np.random.default_rng([seed, 77]), outlier_ratio)
        result = estimate_relative_pose(pair.points1, pair.points2, pair.camera, pair.camera, options=AUTO)
        right = result.success and pair.t is not None and pose_error_deg(result.R, result.t, pair.R, pair.t) < 5
        trusted_wrongly += not right and result.confidence > 0.9
        if kind == "depth":
            assert right
            assert result.confidence > 0.7
    assert trusted_wrongly <= 1


@pytest.mark.parametrize("count", [10, 15, 25])
def test_few_matches_at_random_are_rarely_an_answer(count):
    """A filter may leave few random matches if images do not overlap, and some model always fits half of them."""
    camera, believed = Camera("SIMPLE_PINHOLE", (800.0, 500.0, 400.0), 1000, 800), 0
    for seed in range(40):
        rng = np.random.default_rng([seed, count])
        points1, points2 = rng.uniform(0, 1, (2, count, 2)) * (1000, 800)
        believed += estimate_relative_pose(points1, points2, camera, camera).confidence > 0.5
    assert believed <= 3


def outcome_deviations(problem, model, weights, noise, dropped):
    """Return the deviations of the outcome of a model, with and without the dropped matches."""
    rates, prior = outcome_rates(problem, model), problem.prior_information
    points = problem.correspondences
    return problem.model_kernels.outcome_deviations(model, points, weights, rates, noise**2, prior, dropped)


def test_an_answer_that_rests_on_few_matches_is_not_supported(rng):
    """A line leaves two degrees of freedom. Two wrong matches determine them without any other support."""
    pair = make_hard_pair("line", rng)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera, pair.camera)
    depth = make_hard_pair("depth", rng)
    other = Essential.from_pixels(depth.points1, depth.points2, depth.camera, depth.camera)
    deviations = [
        outcome_deviations(each, pose, np.ones(each.num_points), 0.5 * each.pixel, dropped=3)
        for each, pose in ((problem, join_pose(pair.R, pair.t)), (other, join_pose(depth.R, depth.t)))
    ]
    assert deviations[0][1] > 5 * deviations[1][1]
    assert all(supported > every for every, supported in deviations)


@pytest.mark.parametrize("problem_class", [Essential, Fundamental, FocalPose])
def test_deviations_agree_with_the_propagated_covariance(rng, problem_class):
    pair = make_pair(200, outlier_ratio=0.0, seed=4)
    if problem_class is FocalPose:  # one of its focal lengths is exact
        uncertain = replace(pair.camera2, focal_deviation=0.1)
        problem = FocalPose.from_pixels(pair.points1, pair.points2, pair.camera1, uncertain, shared=False)
        model = np.c_[join_pose(pair.R, pair.t), np.zeros((3, 2))]
    elif problem_class is Essential:
        problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
        model = join_pose(pair.R, pair.t)
    else:
        problem = Fundamental.from_pixels(pair.points1, pair.points2)
        model = problem.solve(np.arange(7, dtype=np.int32)[None])[0]
    weights, rates, noise = rng.uniform(0, 1, 200), outcome_rates(problem, model), 0.5 * problem.pixel
    slopes = problem.model_kernels.jacobian(model, problem.correspondences)[1]

    def deviation(weights):
        information = information_of(problem, model, weights, noise)
        return np.sqrt(np.linalg.eigvalsh(rates.T @ np.linalg.solve(information, rates))[-1])

    left = weights.copy()
    for count in (4, 3):
        covariance = np.linalg.inv(information_of(problem, model, left, noise))
        influence = left * np.einsum("ni,ij,nj->n", slopes, covariance, slopes)
        left[np.argsort(-influence)[:count]] = 0
    found = outcome_deviations(problem, model, weights, noise, dropped=7)
    assert np.allclose(found, [deviation(weights), deviation(left)], rtol=1e-4)


def test_the_width_of_a_line_is_little(rng):
    widths = {}
    for kind in ("line", "depth"):
        pair = make_hard_pair(kind, rng)
        problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera, pair.camera)
        widths[kind] = inlier_width(problem)
    assert widths["line"] < 0.05 < 0.2 < widths["depth"]


def test_cards_of_the_weights_name_the_evidence():
    cards = sorted((Path(caransac.__file__).parent / "learned" / "weights").glob("*.json"))
    named = [card["confidence"]["evidence"] for card in map(read_card, cards) if "confidence" in card]
    assert len(named) >= 2
    assert all(tuple(labels) == EVIDENCE for labels in named)


def read_card(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_rotation_is_at_least_as_sure_as_its_pose():
    network, pair = load_network("default"), make_pair(300, seed=0)
    problem = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    doubtful = StateNetwork({**network.weights, "rotation_confidence.essential.bias": np.float32(-30)})
    found = assess(problem, doubtful, answer(problem, doubtful, pair.scores), Options())
    assert found.rotation_confidence == found.confidence > 0.5

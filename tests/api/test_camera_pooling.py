"""Focal length of one camera pooled over many pairs, and collections that do not determine it."""

from types import SimpleNamespace

import numpy as np
import pytest

import caransac
from caransac import Options, estimate_camera, estimate_relative_pose
from caransac.api.camera_pooling import LOG_FOCALS, pool_camera, spread_choice, trial_focals
from caransac.api.camera_profile import CameraProfile
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.tuning import ERRORS

SIZE = (1024, 768)
FOCAL = 760.0
PINHOLE = caransac.Camera("SIMPLE_PINHOLE", (FOCAL, 511.5, 383.5))
SIMPLE_RADIAL = caransac.Camera("SIMPLE_RADIAL", (FOCAL, 511.5, 383.5, -0.1))


def motion(kind, rng):
    """Draw R and t of a pair in a collection: around an object, forward, or of a plane."""
    if kind == "forward":
        return rotation_from_vector(rng.normal(0, 0.01, 3)), np.r_[rng.normal(0, 0.05, 2), -rng.uniform(0.5, 1.5)]
    R = rotation_from_vector(rng.normal(0, 0.2, 3) * [1, 1.5, 0.5])
    return R, np.array([0, 0, 6.0]) - R @ [0, 0, 6.0] + rng.normal(0, 0.2, 3)


def view(X, focal, size):
    pixels = X[:, :2] / X[:, 2:] * focal + (np.array(size) - 1) / 2
    return pixels, ((pixels >= 0) & (pixels < size)).all(axis=1) & (X[:, 2] > 0.1)


def pair_of(kind, seed, focal=FOCAL, noise_px=0.5, size2=SIZE):
    """Create points (n, 2) of two images, a quarter of them wrong. Return them and the pose."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(-3, 3, (600, 2)), np.full(600, 6.0) if kind == "planar" else rng.uniform(4, 9, 600)]
    R, t = motion(kind, rng)
    (points1, seen1), (points2, seen2) = view(X, focal, SIZE), view(X @ R.T + t, focal, size2)
    wrong = rng.random(600) < 0.25
    points2[wrong] = rng.uniform(0, size2, (int(wrong.sum()), 2))
    seen = seen1 & (seen2 | wrong)
    noise = rng.normal(0, noise_px, (2, 600, 2))
    return (points1 + noise[0])[seen], (points2 + noise[1])[seen], R, t


def collection(kind, count, start=0, **given):
    return [pair_of(kind, seed, **given)[:2] for seed in range(start, start + count)]


@pytest.mark.parametrize("focal", [560.0, 760.0, 1300.0])
def test_pairs_around_an_object_determine_the_focal_length(focal):
    found = estimate_camera(collection("around", 12, focal=focal), SIZE)
    assert (found.known, found.reason, found.num_pairs) == (True, "agreement", 12)
    assert found.focal_px == pytest.approx(focal, rel=0.015)
    assert abs(np.log(found.focal_px / focal)) < 2 * found.deviation < 0.06
    assert found.num_informative > 6
    camera = found.camera
    assert (camera.fx, camera.focal_deviation) == (pytest.approx(found.focal_px), found.deviation)
    assert (camera.width, camera.height) == SIZE
    np.testing.assert_allclose(camera.K[:2, 2], (511.5, 383.5))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["forward", "planar"])
@pytest.mark.parametrize("noise_px", [0.3, 1.0])
def test_collections_that_do_not_determine_the_focal_length_have_none(kind, noise_px):
    found = estimate_camera(collection(kind, 14, noise_px=noise_px), SIZE)
    assert (found.known, found.focal_px, found.deviation) == (False, None, None)
    assert found.reason in ("too_few_informative", "disagreement")
    assert found.camera.fx == UNKNOWN_FOCAL * 1024
    assert found.camera.focal_deviation == UNKNOWN_FOCAL_DEVIATION


@pytest.mark.slow
def test_pairs_of_other_cameras_are_outvoted():
    right, wrong = collection("around", 14), collection("around", 3, start=50, focal=1500.0)
    found = estimate_camera(right + wrong, SIZE)
    assert found.focal_px == pytest.approx(FOCAL, rel=0.015)
    half = [*collection("around", 8), *collection("around", 8, start=50, focal=1500.0)]
    assert estimate_camera(half, SIZE).reason == "disagreement"


def test_uninformative_pairs_do_not_count():
    nothing = [(np.zeros((3, 2)), np.zeros((3, 2))), (np.ones((40, 2)), np.ones((40, 2)))]
    found = estimate_camera([*collection("around", 10), *collection("planar", 4), *nothing], SIZE)
    assert found.focal_px == pytest.approx(FOCAL, rel=0.015)
    assert found.num_pairs == 16 and found.num_informative <= 12


@pytest.mark.slow
def test_the_pooled_camera_gives_better_poses_than_none():
    found = estimate_camera(collection("around", 14, focal=560.0), SIZE)
    errors = []
    for seed in range(50, 58):
        points1, points2, R, t = pair_of("around", seed, focal=560.0)
        results = (
            estimate_relative_pose(points1, points2, found.camera, found.camera),
            estimate_relative_pose(points1, points2, image_size1=SIZE, image_size2=SIZE, same_camera=True),
        )
        errors.append([pose_error_deg(result.R, result.t, R, t) for result in results])
    pooled, unknown = np.median(errors, axis=0)
    assert pooled < 0.6 * unknown


def test_pairs_of_rotated_images_may_have_their_own_sizes():
    turned = [
        {"points1": points1, "points2": points2, "image_size2": SIZE[::-1]}
        for points1, points2 in collection("around", 8, size2=SIZE[::-1])
    ]
    found = estimate_camera(turned, SIZE)
    assert found.focal_px == pytest.approx(FOCAL, rel=0.015)


@pytest.mark.slow
def test_pairs_may_be_tuples_mappings_and_records():
    plain = collection("around", 6)
    mappings = [{"points1": points1, "points2": points2} for points1, points2 in plain]
    records = (SimpleNamespace(**mapping, camera1=np.eye(3)) for mapping in mappings)
    found = [estimate_camera(pairs, SIZE, workers=1) for pairs in (plain, mappings, records)]
    assert found[0] == found[1] == found[2]


def test_results_do_not_depend_on_workers_and_order():
    pairs, seen = collection("around", 6), []
    assert estimate_camera(pairs, SIZE, workers=2, progress=seen.append) == estimate_camera(pairs, SIZE, workers=1)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_large_collections_are_thinned(monkeypatch):
    assert spread_choice([5, 9, 7], 3) == [0, 1, 2]
    assert spread_choice([5, 9, 7, 1, 3, 8], 3) == [1, 2, 4], "ranks 0, 2 and 4"
    monkeypatch.setattr("caransac.api.camera_pooling.MOST_PAIRS", 7)
    pairs = collection("around", 9)
    assert estimate_camera(pairs, SIZE).num_pairs == 7
    with pytest.raises(ValueError, match=r"pairs\[8\]: points2 missing"):
        estimate_camera([*pairs[:8], {"points1": pairs[8][0]}], SIZE)


def test_no_pairs_give_no_camera():
    found = estimate_camera([], SIZE)
    assert (found.known, found.num_pairs, found.reason) == (False, 0, "too_few_informative")


@pytest.mark.parametrize(
    ("pairs", "size", "message"),
    [
        ([], (0, 5), "image_size must be"),
        ([], None, "image_size"),
        ([(np.zeros((9, 2)),)], SIZE, r"pairs\[0\]: a tuple must be \(points1, points2"),
        ([(np.zeros((9, 2)), np.zeros((8, 2)))], SIZE, r"pairs\[0\]: points"),
        ([{"points1": np.zeros((9, 2))}], SIZE, r"pairs\[0\]: points2 missing"),
        ([{"points1": np.zeros((9, 2)), "points2": np.zeros((9, 2)), "camera1": np.eye(3)}], SIZE, "camera1"),
        ([{"points1": np.zeros((9, 2)), "points2": np.zeros((9, 2)), "image_size1": (9, 9)}], SIZE, "image_size1 must"),
    ],
)
def test_mistakes_are_named(pairs, size, message):
    with pytest.raises(ValueError, match=message):
        estimate_camera(pairs, size)


def test_pooling_of_known_curves():
    """Gaussian log-likelihoods: the pooled maximum is the weighted mean. Single overconfident pairs do not dominate."""
    lens = caransac.Camera.of_unknown_focal(*SIZE)
    focals = np.log(trial_focals(lens))
    np.testing.assert_allclose(focals, LOG_FOCALS + np.log(1024))
    rng = np.random.default_rng(0)
    curves = [CameraProfile(-0.5 * ((focals - np.log(900) - rng.normal(0, 0.02)) / 0.01) ** 2) for _ in range(30)]
    found = pool_camera(curves, lens, seed=0)
    assert found.focal_px == pytest.approx(900, rel=0.01)
    assert found.k1 is None, "k1 was not requested"
    sure = [CameraProfile(-0.5 * ((focals - np.log(1500)) / 0.001) ** 2)]
    assert pool_camera(curves + sure, lens, seed=0).focal_px == pytest.approx(found.focal_px, rel=0.003)
    flat = [CameraProfile(np.zeros(len(focals)))] * 30
    assert pool_camera(flat, lens, seed=0).num_informative == 0
    falling = [CameraProfile(-100.0 * np.arange(len(focals)))] * 30
    assert pool_camera(falling, lens, seed=0).reason == "too_few_informative", (
        "a maximum at the end of the range does not count"
    )


def test_pairs_that_scatter_more_than_stated_are_pooled(rng):
    """As in a hand-held video: every pair claims a deviation of 2 %, six are wrong, a few have another camera."""
    camera = caransac.Camera.of_unknown_focal(*SIZE)
    errors = np.r_[rng.normal(0, 0.06, 22), rng.uniform(-0.7, 0.7, 6)]
    curves = [
        CameraProfile(-0.5 * ERRORS.cameras * ((LOG_FOCALS - np.log(900 / 1024) - error) / 0.02) ** 2)
        for error in errors
    ]
    found = pool_camera([*curves, *[None] * 30], camera, seed=0)
    assert (found.reason, found.num_pairs, found.num_informative) == ("agreement", 58, 28)
    assert abs(np.log(found.focal_px / 900)) < 2 * found.deviation < 0.1
    assert 18 <= found.num_agreeing <= 24


def test_classical_methods_pool_focal_lengths_too():
    found = estimate_camera(collection("around", 8), SIZE, options=Options(method="lm-lo"))
    assert found.focal_px == pytest.approx(FOCAL, rel=0.02)


def test_pooling_of_known_lenses():
    """Pairs scatter about one k1. Some are wrong but confident, and the prior pulls each towards zero."""
    lens = caransac.Camera.of_unknown_focal(*SIZE)
    focals, rng, prior = np.log(trial_focals(lens)), np.random.default_rng(1), lens.distortion_deviation
    curve, even = -0.5 * ((focals - np.log(lens.fx)) / 0.02) ** 2, np.ones(len(focals))
    told = [
        CameraProfile(curve, curve, even * rng.normal(-0.1, each) / (1 + (each / prior) ** 2), each)
        for each in rng.uniform(0.01, 0.04, 30)
    ]
    told += [CameraProfile(curve, curve, even * k1, 0.005) for k1 in (0.2, -0.3, 0.1, 0.25)]
    found = pool_camera(told, lens, seed=0)
    assert found.k1 == pytest.approx(-0.1, abs=0.015)
    assert abs(found.k1 + 0.1) < 2 * found.k1_deviation < 0.08
    assert found.camera.model == "SIMPLE_RADIAL"
    assert found.camera.k1 == found.k1
    assert found.camera.distortion_deviation == found.k1_deviation
    open_ones = [CameraProfile(curve, curve, even * k1, 0.2) for k1 in rng.normal(0, 0.05, 30)]
    assert pool_camera(open_ones, lens, seed=0).k1 is None
    straight = [CameraProfile(curve, curve, even * k1, 0.02) for k1 in rng.normal(0, 0.02, 30)]
    assert pool_camera(straight, lens, seed=0).k1 == 0
    assert 0 < pool_camera(straight, lens, seed=0).camera.distortion_deviation < prior
    assert pool_camera(open_ones, lens, seed=0).camera.distortion_deviation == prior


@pytest.mark.slow
def test_the_lens_of_a_distorted_collection_is_pooled():
    pairs = []
    for pair in collection("around", 20, noise_px=0.3):
        bent = [SIMPLE_RADIAL.rays_to_pixels(PINHOLE.pixels_to_rays(np.asarray(each))) for each in pair[:2]]
        pairs.append((*bent, *pair[2:]))
    found = estimate_camera(pairs, SIZE)
    assert found.focal_px == pytest.approx(FOCAL, rel=0.05)
    assert found.k1 == pytest.approx(SIMPLE_RADIAL.k1, abs=0.03)

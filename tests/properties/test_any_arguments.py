"""Public functions return a complete result or raise a ValueError, for any arguments."""

import dataclasses
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import ANYTHING, CAMERAS, JUNK, NUMBERS, any_points

import caransac
from caransac import Camera, Options
from caransac.camera import PARAMETERS

pytestmark = pytest.mark.slow

CAMERA = Camera("SIMPLE_PINHOLE", (800.0, 320.0, 240.0))
UNKNOWN = Camera.of_unknown_focal(4000, 4000)
QUICK = Options(rounds=1, samples_per_round=32, keep_trace=True)
ESTIMATES = {
    "estimate": lambda points1, points2, **more: caransac.estimate(points1, points2, **more),
    "estimate_fundamental": caransac.estimate_fundamental,
    "estimate_homography": caransac.estimate_homography,
    "estimate_relative_pose": lambda points1, points2, **more: caransac.estimate_relative_pose(
        points1, points2, CAMERA, CAMERA, **more
    ),
    "with unknown focal lengths": lambda points1, points2, **more: caransac.estimate_relative_pose(
        points1, points2, UNKNOWN, UNKNOWN, **more
    ),
}
TESTED = {
    *("estimate_relative_poses", "estimate_fundamentals", "estimate_camera", "pose_from_fundamental", "show"),
    *("matches_from", "matches_from_warp", "load_result"),
    *("estimate_absolute_pose", "estimate_relative_pose_from_rays", "refine_matches"),
}


def test_no_public_function_is_forgotten():
    functions = {name for name in caransac.__all__ if callable(getattr(caransac, name)) and name.islower()}
    assert functions <= TESTED | set(ESTIMATES)


def not_finite(value, name):
    """Yield the names of all numbers in a result and its parts that are NaN or infinite."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from not_finite(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, tuple):
        for each in value:
            yield from not_finite(each, name)
    elif isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
        yield name


def check_result(result, count):
    """Assert that a result is complete: every field has its shape, and numbers are in their range."""
    assert not list(not_finite(result, "result"))
    assert result.inliers.shape == (count,)
    assert result.inliers.dtype == bool
    assert result.num_inliers == result.inliers.sum()
    assert result.consensus >= 0
    assert 0 <= result.confidence <= 1
    if result.probabilities is not None:
        assert result.probabilities.shape == (count,)
        assert ((result.probabilities >= 0) & (result.probabilities <= 1)).all()
    for name, shape in (("R", (3, 3)), ("t", (3,)), ("E", (3, 3)), ("F", (3, 3)), ("H", (3, 3))):
        model = getattr(result, name, None)
        assert model is None or (model.shape == shape and np.isfinite(model).all())
    if not result.success:
        assert result.num_inliers == 0
        assert result.stop_reason


@given(points=any_points(), camera=CAMERAS)
def test_points_in_space_at_any_position_give_a_result(points, camera):
    points2d, others = points
    points3d = np.column_stack([others, others[:, :1] + 1])
    for each in (CAMERA, UNKNOWN, camera):
        try:
            result = caransac.estimate_absolute_pose(points2d, points3d, each, options=QUICK)
        except ValueError:
            continue
        assert not list(not_finite(result, "result"))
        assert result.inliers.shape == (len(points2d),)
        assert result.success == (result.R is not None)
        assert result.R is None or (np.isfinite(result.R).all() and np.isfinite(result.t).all())


@given(points=any_points())
def test_rays_of_any_kind_give_a_result_or_are_refused(points):
    rays = [np.column_stack([each, np.ones(len(each))]) for each in points]
    try:
        result = caransac.estimate_relative_pose_from_rays(*rays, options=QUICK)
    except ValueError:
        return
    assert not list(not_finite(result, "result"))
    assert result.inliers.shape == (len(points[0]),)


@given(points=any_points())
def test_points_at_any_position_are_refined_or_refused(points):
    image = np.random.default_rng(0).integers(0, 255, (40, 50), dtype=np.uint8)
    try:
        found = caransac.refine_matches(image, image[::-1], *points)
    except ValueError:
        return
    assert not list(not_finite(found, "found"))
    assert found.points2.shape == (len(points[0]), 2)
    assert np.array_equal(found.points2[~found.refined], points[1][~found.refined])


# Found by these tests: the information of a focal length was singular up to rounding, and its inverse negative.
SINGULAR = (
    np.array([[0.0, 1], [0, 1], [1, 1], [1, 1], [1, 12], [1, 1]]),
    np.array([[1.0, 0], [1, 1], [1, 0], [1, 1], [1, 1], [1, 1]]),
)


@pytest.mark.parametrize("name", ESTIMATES)
@given(points=any_points())
@example(points=SINGULAR)
def test_points_at_any_position_give_a_result(name, points):
    try:
        result = ESTIMATES[name](*points, options=QUICK)
    except ValueError as error:
        # Points that do not fit the camera.
        not_pixels = any(words in str(error) for words in ("look normalised", "does not contain"))
        assert not_pixels or not all(np.abs(values).max(initial=0) < 1e12 for values in points), error
        return
    check_result(result, len(points[0]))


@pytest.mark.parametrize("name", ESTIMATES)
@given(points1=ANYTHING, points2=ANYTHING, scores=ANYTHING, kind=st.one_of(JUNK, st.sampled_from(["ratio"])))
def test_arrays_of_any_kind_give_a_result_or_are_refused(name, points1, points2, scores, kind):
    for more in ({}, {"scores": scores, "score_kind": kind}, {"features": scores}):
        try:
            check_result(ESTIMATES[name](points1, points2, options=QUICK, **more), len(points1))
        except ValueError:
            continue


@given(camera1=CAMERAS, camera2=CAMERAS, size=ANYTHING, same=st.one_of(JUNK, st.booleans()), points=any_points())
def test_cameras_of_any_kind_are_accepted_or_refused(camera1, camera2, size, same, points):
    for more in ({}, {"image_size1": size, "image_size2": size, "same_camera": same}):
        try:
            result = caransac.estimate_relative_pose(*points, camera1, camera2, options=QUICK, **more)
        except ValueError:
            continue
        check_result(result, len(points[0]))


@given(values=st.dictionaries(st.sampled_from([*Options.__dataclass_fields__, "max_eror"]), ANYTHING, max_size=3))
@example(values={"rounds": np.int8(100)})
@example(values={"samples_per_round": np.int16(20_000), "top_models": np.int16(20_000)})
def test_options_of_any_kind_are_accepted_or_refused(values):
    try:
        options = Options(**values)
    except ValueError:
        return
    assert 1 <= options.rounds <= 10**6
    assert 1 <= options.samples_per_round <= 10**6


@given(
    model=st.sampled_from([*PARAMETERS, "NONE", ""]),
    params=st.lists(NUMBERS, max_size=12),
    size=st.tuples(NUMBERS, NUMBERS),
    deviation=NUMBERS,
)
def test_cameras_of_any_numbers_are_made_or_refused(model, params, size, deviation):
    try:
        camera = Camera(model, tuple(params), *size, focal_deviation=deviation)
    except ValueError:
        return
    assert np.isfinite(camera.params).all()
    assert camera.mean_focal > 0
    assert Camera.from_dict(camera.to_dict()) == camera
    pixels = np.array([[0.0, 0.0], [300, 200], [-1e6, 1e6]])
    assert camera.pixels_to_rays(pixels).shape == (3, 2)


@given(text=st.one_of(st.text(max_size=30), st.from_regex(r"[A-Z_]{0,14}:?[0-9]{0,3}x?[0-9]{0,3}:?[-0-9.,e±%]{0,30}")))
def test_texts_are_cameras_or_refused(text):
    try:
        camera = Camera.from_text(text)
    except ValueError:
        return
    assert np.isfinite(camera.params).all()


@given(F=ANYTHING, points=any_points(), camera=CAMERAS)
def test_a_pose_comes_from_any_fundamental_matrix_or_none(F, points, camera):
    try:
        R, t = caransac.pose_from_fundamental(F, *points, camera, CAMERA)
    except ValueError:
        return
    assert np.allclose(R.T @ R, np.eye(3), atol=1e-6)
    assert np.isclose(np.linalg.norm(t), 1)


@pytest.mark.parametrize("name", ["estimate_relative_poses", "estimate_fundamentals"])
@given(pairs=st.one_of(JUNK, st.lists(st.one_of(ANYTHING, st.tuples(ANYTHING, ANYTHING), any_points()), max_size=2)))
def test_lists_of_any_values_give_results_or_are_refused(name, pairs):
    try:
        results = getattr(caransac, name)(pairs, options=QUICK, workers=1)
    except (ValueError, TypeError) as error:
        # An argument that is not iterable raises a TypeError.
        assert not isinstance(pairs, list) or isinstance(error, ValueError)
        return
    assert len(results) == len(pairs)


@given(pairs=st.lists(any_points(), max_size=2), size=st.one_of(ANYTHING, st.just((640, 480))))
def test_focal_lengths_are_found_or_not(pairs, size):
    try:
        found = caransac.estimate_camera(pairs, size, options=QUICK, workers=1)
    except ValueError:
        return
    assert not found.known or found.focal_px > 0


@given(points=any_points(), other=ANYTHING)
def test_reports_of_any_points_are_written_or_refused(points, other):
    try:
        result = caransac.estimate_fundamental(*points, options=QUICK)
    except ValueError:
        return
    assert "</html>" in caransac.show(result, *points).page
    with_other = points[0], other
    try:
        caransac.show(result, *with_other)
    except ValueError:
        return
    assert np.shape(other) == points[0].shape


ENTRIES = ("keypoints", "keypoints0", "keypoints1", "matches", "matches0", "scores", "image_size", "batch_indexes")
KEYPOINTS = st.one_of(
    ANYTHING,
    st.lists(ANYTHING, max_size=2),
    st.dictionaries(st.sampled_from(ENTRIES), st.one_of(ANYTHING, st.lists(ANYTHING, max_size=2)), max_size=5),
    any_points().map(lambda points: {"keypoints0": points[0], "keypoints1": points[1]}),
)


@given(first=KEYPOINTS, second=KEYPOINTS, matches=KEYPOINTS, scores=ANYTHING, camera=CAMERAS, size=ANYTHING)
def test_output_of_matchers_is_accepted_or_refused(first, second, matches, scores, camera, size):
    for more in ({}, {"scores": scores, "score_kind": "ratio"}, {"camera1": camera, "image_size2": size}):
        for given_matches in (None, matches):
            try:
                found = caransac.matches_from(first, second, given_matches, **more)
            except ValueError:
                continue
            assert found.points1.shape == found.points2.shape == (len(found.points1), 2)
            assert found.scores is None or found.scores.shape == (len(found.points1),)
            assert np.isfinite(found.points1).all() and np.isfinite(found.points2).all()


@given(
    warp=st.one_of(ANYTHING, st.just(np.zeros((3, 4, 4)))),
    certainty=st.one_of(ANYTHING, st.just(np.ones((3, 4)))),
    size=st.one_of(ANYTHING, st.just((640, 480))),
    limits=st.tuples(NUMBERS, NUMBERS, NUMBERS),
)
@example(warp=np.zeros((3, 4, 4)), certainty=np.ones((3, 4)), size=(640, 480), limits=(5, 0.5, 1))
def test_warps_are_accepted_or_refused(warp, certainty, size, limits):
    most, least, seed = limits
    for more in ({}, {"max_matches": most}, {"min_certainty": least}, {"seed": seed, "max_matches": 2}):
        try:
            found = caransac.matches_from_warp(warp, certainty, image_size1=size, image_size2=(9, 9), **more)
        except ValueError:
            continue
        assert found.points1.shape == (len(found.scores), 2)


RESULT = caransac.estimate_relative_pose(
    np.random.default_rng(0).uniform(0, 99, (9, 2)),
    np.random.default_rng(1).uniform(0, 99, (9, 2)),
    CAMERA,
    CAMERA,
    options=QUICK,
).to_dict(full=True)
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@given(
    changes=st.dictionaries(st.sampled_from([*RESULT, "epipolar"]), PLAIN, max_size=3),
    dropped=st.sets(st.sampled_from([*RESULT]), max_size=1),
)
def test_files_of_results_are_read_or_refused(changes, dropped):
    values = {name: value for name, value in (RESULT | changes).items() if name not in dropped}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        path.write_text(json.dumps(values))
        try:
            found = caransac.load_result(path)
        except ValueError as error:
            assert "r.json" in str(error)
            return
    assert found.inliers.shape == (9,) and found.points1.shape == (9, 2)
    assert repr(found)

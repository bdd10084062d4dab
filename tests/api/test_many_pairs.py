"""Many pairs in one call: same results in the same order, for any number of threads."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from functools import partial

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair
from caransac_lab.synthetic import random_pair

FEW = Options(rounds=2, samples_per_round=64)


def as_call(pair, *names):
    return {name: getattr(pair, name) for name in names}


def pairs_of_all_forms(rng):
    """Return pairs in every form that a batch accepts, and the equivalent single calls."""
    cameras, scored = ("points1", "points2", "camera1", "camera2"), ("scores", "score_kind")
    one, two, three, four = (random_pair(rng, num_points=n) for n in (60, 400, 3, 900))
    five = make_pair(150, seed=8)
    calls = [
        as_call(one, *cameras, *scored) | {"options": Options(method="lm-lo", seed=3, rounds=2)},
        as_call(two, *cameras, *scored),
        as_call(three, *cameras, *scored),
        as_call(four, *cameras),
        as_call(five, *cameras),
    ]
    pairs = [calls[0], two, Pair.from_synthetic(three), tuple(calls[3].values()), list(calls[4].values())]
    return pairs, [{"options": FEW} | call for call in calls]


def assert_same(results, expected):
    assert len(results) == len(expected)
    for result, single in zip(results, expected, strict=True):
        for name in (field.name for field in fields(single)):
            found, value = getattr(result, name), getattr(single, name)
            if name == "alternatives":  # a list of poses
                found, value = ([np.c_[pose] for pose in poses] for poses in (found, value))
            if name == "rivals":
                found, value = ([rival.model for rival in rivals] for rivals in (found, value))
            if name != "elapsed_s":
                np.testing.assert_array_equal(found, value, err_msg=name)


@pytest.mark.parametrize("workers", [1, 2, 5, None])
def test_batches_give_the_same_bits_as_single_calls(rng, workers):
    pairs, calls = pairs_of_all_forms(rng)
    poses = caransac.estimate_relative_poses(iter(pairs), options=FEW, workers=workers)
    assert_same(poses, [caransac.estimate_relative_pose(**call) for call in calls])
    assert not poses[2].success
    uncalibrated = [
        {name: value for name, value in call.items() if name not in ("camera1", "camera2")} for call in calls
    ]
    matrices = caransac.estimate_fundamentals([*uncalibrated, pairs[1], pairs[3][:2]], options=FEW, workers=workers)
    expected = [caransac.estimate_fundamental(**call) for call in uncalibrated]
    assert_same(matrices, [*expected, expected[1], expected[3]])


@pytest.mark.slow
def test_other_executors_give_the_same_bits(rng):
    pairs, calls = pairs_of_all_forms(rng)
    expected = [caransac.estimate_relative_pose(**call) for call in calls]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_same(caransac.estimate_relative_poses(pairs, options=FEW, workers=pool), expected)
        with pytest.raises(ValueError, match=r"pairs\[1\]: .* missing in a NoneType"):
            caransac.estimate_relative_poses([pairs[0], None, pairs[1]], options=FEW, workers=pool)
        assert pool.submit(abs, -1).result() == 1  # the caller's pool stays open


def test_progress_counts_in_the_callers_thread(rng):
    pairs, _ = pairs_of_all_forms(rng)
    seen = []
    caransac.estimate_relative_poses(
        pairs, options=FEW, workers=3, progress=lambda done: seen.append((done, threading.current_thread()))
    )
    assert seen == [(done, threading.main_thread()) for done in range(1, len(pairs) + 1)]


def test_tuples_may_have_no_cameras():
    pair = make_pair(300, outlier_ratio=0.2, seed=5)
    points, size = (pair.points1, pair.points2), (pair.camera1.width, pair.camera1.height)
    sizes = {"image_size1": size, "image_size2": size}
    scored = (*points, None, None, pair.scores, "ratio", size, size)
    plain = (*points, None, pair.camera2, None, None, size, None)
    expected = [
        caransac.estimate_relative_pose(*points, scores=pair.scores, score_kind="ratio", **sizes),
        caransac.estimate_relative_pose(*points, None, pair.camera2, image_size1=size),
    ]
    assert_same(caransac.estimate_relative_poses([scored, plain]), expected)
    found = caransac.estimate_fundamentals([(*points, None, None, size, size)])
    assert_same(found, [caransac.estimate_fundamental(*points, **sizes)])


def test_no_pairs_no_results():
    assert caransac.estimate_relative_poses([]) == []
    assert caransac.estimate_fundamentals(iter(()), workers=2) == []


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points1": [[0, 0]]}, r"pairs\[3\]: points2, camera1, camera2 missing"),
        (({"points": 1}), r"pairs\[3\]: unknown argument 'points'; did you mean 'points\d'"),
        (
            (1, 2, 3),
            r"pairs\[3\]: a tuple must be \(points1, points2, camera1, camera2\[, scores, score_kind\[, .*\]\), got 3",
        ),
        (([[0, 0]], [[np.nan, 0]], np.eye(3), np.eye(3)), r"pairs\[3\]: points2 must not contain NaN"),
        (([[0, 0]], [[1, 0]], np.eye(3), np.eye(2)), r"pairs\[3\]: camera2: K must be 3x3"),
        (([[0, 0]], [[1, 0]], None, np.eye(3)), r"camera1 missing in a tuple; for unknown cameras, give image_size1="),
        (None, r"pairs\[3\]: points1, points2, camera1, camera2 missing in a NoneType"),
    ],
)
def test_mistakes_name_the_pair(workers, wrong, message):
    good = make_pair(50)
    with pytest.raises(ValueError, match=message):
        caransac.estimate_relative_poses([good, good, good, wrong, good], workers=workers, options=FEW)


@pytest.mark.parametrize("pairs", [None, 5, object()], ids=lambda pairs: type(pairs).__name__)
def test_what_is_no_list_of_pairs_is_named(pairs):
    camera = partial(caransac.estimate_camera, image_size=(640, 480))
    for call in (caransac.estimate_relative_poses, caransac.estimate_fundamentals, camera):
        with pytest.raises(ValueError, match="pairs must be a list or another iterable of pairs, not"):
            call(pairs)


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2"])
def test_workers_must_be_positive(workers):
    with pytest.raises(ValueError, match="workers must be a whole number from 1"):
        caransac.estimate_relative_poses([make_pair(20)], workers=workers)

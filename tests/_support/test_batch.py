"""Many pairs at once: the same answers in the same order, whatever the threads do."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import count, islice

import numpy as np
import pytest
from calls import leave_or_answer

import caransac
from caransac import Options
from caransac._support.batch import LOOK_AHEAD, map_ordered, submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.datasets import Pair
from caransac.synthetic import make_pair, random_pair

FEW = Options(rounds=2, samples_per_round=64)


def as_call(pair, *names):
    return {name: getattr(pair, name) for name in names}


def pairs_of_all_forms(rng):
    """Pairs in every form a batch accepts, and the calls they stand for."""
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
        for name, value in vars(single).items():
            if name != "elapsed_s":
                np.testing.assert_array_equal(getattr(result, name), value, err_msg=name)


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


def test_other_executors_give_the_same_bits(rng):
    pairs, calls = pairs_of_all_forms(rng)
    expected = [caransac.estimate_relative_pose(**call) for call in calls]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_same(caransac.estimate_relative_poses(pairs, options=FEW, workers=pool), expected)
        with pytest.raises(ValueError, match=r"pairs\[1\]: .* missing in a NoneType"):
            caransac.estimate_relative_poses([pairs[0], None, pairs[1]], options=FEW, workers=pool)
        assert pool.submit(abs, -1).result() == 1  # it stays open


def test_progress_counts_in_the_callers_thread(rng):
    pairs, _ = pairs_of_all_forms(rng)
    seen = []
    caransac.estimate_relative_poses(
        pairs, options=FEW, workers=3, progress=lambda done: seen.append((done, threading.current_thread()))
    )
    assert seen == [(done, threading.main_thread()) for done in range(1, len(pairs) + 1)]


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
            r"pairs\[3\]: a tuple must be \(points1, points2, camera1, camera2\[, scores, score_kind\]\), got 3",
        ),
        (([[0, 0]], [[np.nan, 0]], np.eye(3), np.eye(3)), r"pairs\[3\]: points2 must not contain NaN"),
        (([[0, 0]], [[1, 0]], np.eye(3), np.eye(2)), r"pairs\[3\]: camera2: K must be 3x3"),
        (None, r"pairs\[3\]: points1, points2, camera1, camera2 missing in a NoneType"),
    ],
)
def test_mistakes_name_the_pair(workers, wrong, message):
    good = make_pair(50)
    with pytest.raises(ValueError, match=message):
        caransac.estimate_relative_poses([good, good, good, wrong, good], workers=workers, options=FEW)


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2"])
def test_workers_must_be_positive(workers):
    with pytest.raises(ValueError, match="workers must be a whole number from 1 on"):
        caransac.estimate_relative_poses([make_pair(20)], workers=workers)


def test_items_are_read_as_they_are_needed():
    taken = []

    def produce():
        for number in count():  # without an end
            taken.append(number)
            yield number

    answers = map_ordered(lambda number: number * number, produce(), workers=2)
    assert list(islice(answers, 10)) == [number**2 for number in range(10)]
    assert len(taken) <= 10 + 2 * LOOK_AHEAD
    answers.close()


def test_threads_work_at_the_same_time_and_keep_the_order():
    meeting = threading.Barrier(3, timeout=10)  # passes only when three calls run at once

    def slow_first(number):
        meeting.wait()
        time.sleep(0.02 * (3 - number % 3))
        return number

    assert list(map_ordered(slow_first, range(9), workers=3)) == list(range(9))


def test_an_error_cancels_what_has_not_begun():
    begun = []

    def fail_at_two(number):
        begun.append(number)
        if number == 2:
            raise RuntimeError("two")
        time.sleep(0.01)
        return number

    answers = map_ordered(fail_at_two, count(), workers=2)
    assert [next(answers), next(answers)] == [0, 1]
    with pytest.raises(RuntimeError, match="two"):
        next(answers)
    assert max(begun) < 3 + 2 * LOOK_AHEAD


def test_what_is_done_first_comes_first():
    go = threading.Event()

    def wait_for_the_others(number):
        return number if number else go.wait(10)

    with ThreadPoolExecutor(2) as pool:
        calls = submit_all(pool, wait_for_the_others, range(4), look_ahead=2)
        assert [next(calls)[0] for _ in range(3)] == [1, 2, 3]
        go.set()
        assert [(item, done.result()) for item, done in calls] == [(0, True)]


@pytest.mark.parametrize("ordered", [True, False])
def test_no_more_than_the_look_ahead_is_under_way(ordered):
    taken = []

    def produce():
        for number in count():
            taken.append(number)
            yield number

    with ThreadPoolExecutor(2) as pool:
        calls = submit_all(pool, abs, produce(), look_ahead=5, ordered=ordered)
        assert taken == []
        for consumed in range(1, 20):
            next(calls)
            assert len(taken) == consumed + 4
        calls.close()


def test_leaving_cancels_what_has_not_begun():
    go, futures = threading.Event(), []

    class Watched(ThreadPoolExecutor):
        def submit(self, *call):
            futures.append(super().submit(*call))
            return futures[-1]

    with Watched(1) as pool:
        with pytest.raises(RuntimeError, match="the caller's"):
            for _, done in submit_all(pool, lambda number: number and go.wait(10), range(9), look_ahead=4):
                assert done.result() == 0
                raise RuntimeError("the caller's")
        go.set()
    assert len(futures) == 4 and [future.cancelled() for future in futures[2:]] == [True, True]


def test_the_call_that_brings_a_worker_down_is_known():
    with ProcessPool(2) as pool:
        calls = submit_all(pool, os.kill, [(os.getpid(), 0)], look_ahead=2)  # one that fails in its own way
        with pytest.raises(TypeError):
            next(calls)[1].result()
        died = {}
        for code, done in submit_all(pool, leave_or_answer, [0, 0, 7, 0, 8, 0], look_ahead=4):
            died.setdefault(code, []).append(isinstance(done.exception(), WorkerDiedError))
    assert died == {0: [False] * 4, 7: [True], 8: [True]}

"""Calls that run in parallel: order of results, read-ahead, and the state after an error."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import pytest
from calls import leave_or_answer

from caransac._support.batch import LOOK_AHEAD, map_ordered, submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError


def test_items_are_read_on_demand():
    taken = []

    def produce():
        for number in count():  # endless
            taken.append(number)
            yield number

    answers = map_ordered(lambda number: number * number, produce(), workers=2)
    assert list(islice(answers, 10)) == [number**2 for number in range(10)]
    assert len(taken) <= 10 + 2 * LOOK_AHEAD
    answers.close()


def test_threads_work_at_the_same_time_and_keep_the_order():
    meeting = threading.Barrier(3, timeout=120)  # passes only when three calls run at once

    def slow_first(number):
        meeting.wait()
        time.sleep(0.02 * (3 - number % 3))
        return number

    assert list(map_ordered(slow_first, range(9), workers=3)) == list(range(9))


def test_an_error_cancels_waiting_calls():
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


def test_finished_calls_come_in_the_order_of_their_ends():
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


def test_leaving_the_loop_cancels_waiting_calls():
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


@pytest.mark.slow
def test_the_call_that_kills_a_worker_is_identified():
    with ProcessPool(2) as pool:
        # A call with a wrong argument fails in the worker.
        calls = submit_all(pool, os.kill, [(os.getpid(), 0)], look_ahead=2)
        with pytest.raises(TypeError):
            next(calls)[1].result()
        died = {}
        for code, done in submit_all(pool, leave_or_answer, [0, 0, 7, 0, 8, 0], look_ahead=4):
            died.setdefault(code, []).append(isinstance(done.exception(), WorkerDiedError))
    assert died == {0: [False] * 4, 7: [True], 8: [True]}

"""Properties that are computed once, by any number of threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from caransac._support.computed_once import computed_once


class Answers:
    """An object whose property waits for other threads while it is computed."""

    def __init__(self, meeting):
        self.meeting, self.calls = meeting, 0

    @property
    @computed_once
    def answer(self):
        """The answer."""
        self.calls += 1
        self.meeting.wait(timeout=10)
        return object()


def test_a_value_is_computed_once():
    answers = Answers(Barrier(1))
    assert answers.answer is answers.answer
    assert answers.calls == 1
    assert Answers.answer.__doc__ == "The answer."


def test_instances_do_not_wait_for_each_other():
    meeting = Barrier(2)  # raises unless both threads are inside at the same time
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda answers: answers.answer, [Answers(meeting), Answers(meeting)])
    assert first is not second


def test_threads_that_compute_a_value_twice_get_the_same_one():
    answers = Answers(Barrier(2))
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda each: each.answer, [answers, answers])
    assert answers.calls == 2
    assert first is second

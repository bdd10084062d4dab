"""A process that was forked while another thread estimates can estimate, too."""

import os
import signal
import threading
import time
import warnings

import pytest

from caransac import estimate, results
from caransac.api import any_geometry
from caransac.synthetic import make_pair

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.mark.parametrize(("place", "name"), [(any_geometry, "estimate_relative_pose"), (results, "median_parallax_px")])
def test_a_child_forked_during_an_estimate_is_not_stuck(monkeypatch, place, name):
    pair = make_pair(60, seed=1)
    arguments = pair.points1, pair.points2, pair.camera1, pair.camera2
    inside, go_on = threading.Event(), threading.Event()
    original, thread = getattr(place, name), threading.Thread(target=estimate, args=arguments)

    def wait_inside(*args, **kwargs):
        if threading.current_thread() is thread:
            inside.set()
            go_on.wait()
        return original(*args, **kwargs)

    monkeypatch.setattr(place, name, wait_inside)
    thread.start()
    inside.wait()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about forks of processes with threads
            child = os.fork()
        if not child:
            try:
                os._exit(0 if estimate(*arguments).success else 1)
            finally:
                os._exit(2)  # the child must not continue with other tests after an exception
        assert exit_code_of(child) == 0
    finally:
        go_on.set()
        thread.join()


def exit_code_of(child, limit_s=20.0):
    """Return the exit code of a child process. It is killed if it takes too long."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "stuck"

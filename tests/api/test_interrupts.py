"""Ctrl-C during an estimate with the largest options."""

import signal
import time

import numpy as np
import pytest

from caransac import Options, estimate_fundamental, estimate_homography, estimate_relative_pose
from caransac import estimate_relative_pose_from_rays as estimate_from_rays
from caransac.synthetic import make_pair

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signal.setitimer")]

PAIR = make_pair(3000, outlier_ratio=0.8, seed=1)
POINTS = PAIR.points1, PAIR.points2
SIZES = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
RAYS = [np.column_stack([points - 500, np.full(len(points), 900.0)]) for points in POINTS]
LARGEST = {"samples_per_round": 10**4, "local_models": 1000, "top_models": 1000, "early_stop": False}
CALLS = {
    "pose": lambda options: estimate_relative_pose(*POINTS, PAIR.camera1, PAIR.camera2, options=options),
    "focal lengths": lambda options: estimate_relative_pose(*POINTS, **SIZES, options=options),
    "fundamental": lambda options: estimate_fundamental(*POINTS, options=options),
    "homography": lambda options: estimate_homography(*POINTS, options=options),
    "rays": lambda options: estimate_from_rays(*RAYS, options=options),
}


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("name", CALLS)
def test_an_estimate_can_be_interrupted_within_a_second(name, method):
    asked_s = 0.2  # processor time in seconds, which other processes do not affect
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, asked_s)
        started = time.process_time()
        with pytest.raises(KeyboardInterrupt):
            CALLS[name](Options(method=method, rounds=1000, **LARGEST))
        assert time.process_time() - started < asked_s + 1.0
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)

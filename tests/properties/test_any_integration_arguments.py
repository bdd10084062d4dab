"""The drop-ins for other libraries return a result or raise a ValueError for any arguments, and never crash."""

import re

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ANYTHING, CAMERAS, any_points

from caransac import Options
from caransac.integrations import opencv, poselib, pycolmap

pytestmark = pytest.mark.slow

K = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
CAMERA = {"model": "SIMPLE_PINHOLE", "width": 640, "height": 480, "params": [800.0, 320.0, 240.0]}
QUICK = Options(rounds=1, samples_per_round=32)
CALLS = {
    "findEssentialMat": lambda x1, x2, camera: opencv.findEssentialMat(x1, x2, camera, options=QUICK),
    "findFundamentalMat": lambda x1, x2, _: opencv.findFundamentalMat(x1, x2, options=QUICK),
    "findHomography": lambda x1, x2, _: opencv.findHomography(x1, x2, cv2.RANSAC, options=QUICK),
    "poselib pose": lambda x1, x2, camera: poselib.estimate_relative_pose(x1, x2, camera, camera, QUICK),
    "poselib fundamental": lambda x1, x2, _: poselib.estimate_fundamental(x1, x2, QUICK),
    "poselib homography": lambda x1, x2, _: poselib.estimate_homography(x1, x2, QUICK),
    "poselib focal": lambda x1, x2, _: poselib.estimate_shared_focal_relative_pose(x1, x2, (320.0, 240.0), QUICK),
    "pycolmap pose": lambda x1, x2, camera: pycolmap.estimate_essential_matrix(x1, x2, camera, camera, QUICK),
    "pycolmap fundamental": lambda x1, x2, _: pycolmap.estimate_fundamental_matrix(x1, x2, QUICK),
    "pycolmap homography": lambda x1, x2, _: pycolmap.estimate_homography_matrix(x1, x2, QUICK),
    "pycolmap two views": lambda x1, x2, camera: pycolmap.estimate_two_view_geometry(
        camera, x1, camera, x2, options=QUICK
    ),
}


@pytest.mark.parametrize("name", CALLS)
@given(points=any_points())
def test_points_at_any_position_give_a_result(name, points):
    try:
        CALLS[name](*points, K if name.startswith("find") else CAMERA)
    except ValueError as error:
        vast = not all(np.abs(values).max(initial=0) < 1e12 for values in points)
        assert vast or re.search("look normalised|does not contain|has a focal length of", str(error)), error


@pytest.mark.parametrize("name", CALLS)
@given(points1=ANYTHING, points2=ANYTHING, camera=st.one_of(CAMERAS, st.just(CAMERA)))
def test_arguments_of_any_kind_are_accepted_or_refused(name, points1, points2, camera):
    try:
        CALLS[name](points1, points2, camera)
    except ValueError:
        return

"""Fixtures of the viewer tests in a real browser: the report of a pose."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from canvases import estimate_all_rounds, opened

from caransac.geometry import join_pose, rotation_from_vector, split_pose
from caransac.synthetic import make_pair
from caransac.viewer import write_report


@pytest.fixture(scope="module")
def open_report(browser):
    """Open a report in its own page: ``with open_report(path) as report``."""
    return partial(opened, browser)


@pytest.fixture(scope="module")
def pair():
    return make_pair(num_points=240, outlier_ratio=0.6, seed=5)


@pytest.fixture(scope="module")
def pose(pair):
    """A result whose first round has a model that visibly differs from the last one."""
    found = estimate_all_rounds(pair)
    before, first, *later = found.trace
    R, t = split_pose(first.best)
    first = replace(first, best=join_pose(rotation_from_vector([0.08, 0.05, 0.1]) @ R, t))
    return replace(found, trace=(before, first, *later))


@pytest.fixture(scope="module")
def report_path(tmp_path_factory, pair, pose):
    shade = np.linspace(60, 200, 1024).astype(np.uint8)
    image = np.broadcast_to(shade[None, :, None], (768, 1024, 3))
    return write_report(
        tmp_path_factory.mktemp("viewer") / "pose.html",
        pose,
        pair.points1,
        pair.points2,
        camera1=pair.camera1,
        camera2=pair.camera2,
        image1=image,
        image2=image,
        scores=pair.scores,
        title="A pair",
    )

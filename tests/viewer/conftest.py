"""What the tests of the viewer in a real browser share: the browser, and the report of a pose.

They need Chromium (`make browser`). Where there is none they are skipped, but not where one must be: with CI or
CARANSAC_BROWSER set, its absence is a failure.
"""

import os
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from canvases import estimate_all_rounds, opened

from caransac.geometry import join_pose, rotation_from_vector, split_pose
from caransac.synthetic import make_pair
from caransac.viewer import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CARANSAC_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = "THE VIEWER IS NOT TESTED: there is no Chromium; `make browser` installs it on Debian as root"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium has none for root
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_report(browser):
    """Opens a report in a page of its own: ``with open_report(path) as report``."""
    return partial(opened, browser)


@pytest.fixture(scope="module")
def pair():
    return make_pair(num_points=240, outlier_ratio=0.6, seed=5)


@pytest.fixture(scope="module")
def pose(pair):
    """A result whose first round had a model that is seen to differ from the last one's."""
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

"""Display of results in a terminal and in a notebook."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import caransac
from caransac import Options, plot
from caransac.geometry import rotation_angle_deg
from caransac.synthetic import make_pair

PAIR = make_pair(1000, outlier_ratio=0.5, seed=4)
POINTS = PAIR.points1, PAIR.points2


def estimate(**options):
    return caransac.estimate_relative_pose(*POINTS, PAIR.camera1, PAIR.camera2, options=Options(**options))


def test_a_pose_is_one_line():
    result = estimate(keep_trace=True)
    angle, t = rotation_angle_deg(result.R), ", ".join(f"{x:.2f}" for x in result.t)
    assert repr(result) == (
        f"RelativePoseResult(success, rotation {angle:.1f}°, t ({t}), {result.num_inliers} of 1000 inliers, "
        f"confidence {result.confidence:.2f}, {1e3 * result.elapsed_s:.1f} ms)"
    )
    assert str(result) == repr(result) and len(repr(result)) < 160
    assert repr(result.trace[1]).startswith(f"Round({result.trace[1].num_hypotheses} hypotheses, ")
    assert len(repr(result.trace)) < 600


def test_other_results_have_one_line_too():
    fundamental = caransac.estimate_fundamental(*POINTS)
    assert re.fullmatch(
        r"FundamentalResult\(success, \d+ of 1000 inliers, confidence [01]\.\d\d, \d+\.\d ms\)", repr(fundamental)
    )
    plane = caransac.estimate_homography(*POINTS)
    assert re.fullmatch(r"HomographyResult\(success, \d+ of 1000 inliers, .*\d+\.\d ms\)", repr(plane))
    assert "H = [[" in plane._repr_html_()
    failed = caransac.estimate_fundamental(*(points[:3] for points in POINTS))
    assert repr(failed).startswith("FundamentalResult(no success: too_few_points, 0 of 3 inliers, confidence 0.00, ")
    classical = estimate(method="lm-lo")
    assert "confidence" not in repr(classical) and "rotation" in repr(classical)


class Texts(HTMLParser):
    """A parser that collects all texts of a page, and its images."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.images = [], []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs)["src"])


def test_a_notebook_shows_a_table_and_the_matrices():
    size = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
    result = caransac.estimate_relative_pose(*POINTS, **size)
    page = result._repr_html_()
    ElementTree.fromstring(page)  # every element is closed
    text = " ".join(Texts(page).texts)
    for expected in (
        "RelativePoseResult",
        f"{result.num_inliers} of 1000 inliers",
        f"confidence {result.confidence:.2f} ",
        f"focal length {result.camera1.mean_focal:.1f} px ± {100 * result.camera1.focal_deviation:.1f} %",
        "R = [[",
        "t = [",
        "E = [[",
    ):
        assert expected in text
    assert Texts(page).images == []
    failed = caransac.estimate_fundamental(*(points[:3] for points in POINTS))._repr_html_()
    assert "too_few_points" in failed and "<details>" not in failed


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
def test_a_summary_has_a_picture_of_the_matches(method):
    result = estimate(method=method)
    image = np.full((768, 1024), 120, np.uint8)
    summary = plot.summary(result, *POINTS, image1=image, image2=image)
    (picture,) = Texts(summary._repr_html_()).images
    assert picture.startswith("data:image/png;base64,iVBOR")
    assert summary.picture.startswith(b"\x89PNG")
    shown = result.inliers if result.probabilities is None else result.probabilities
    assert summary.picture == plot.draw_matches(None, *POINTS, shown, image1=image, image2=image)._repr_png_()
    assert repr(summary) == repr(result)

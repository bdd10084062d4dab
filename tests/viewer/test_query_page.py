"""The page of a localised image: its figures, and its display in a browser."""

import re

import numpy as np
import pytest

from caransac import estimate_absolute_pose
from caransac.synthetic import make_query
from caransac.viewer.query_page import write_query_page

QUERY = make_query(200, outlier_ratio=0.4, seed=5)
SIZE = (QUERY.camera.width, QUERY.camera.height)


def write(folder, camera=None, **given):
    given = {"scores": QUERY.scores, "score_kind": "ratio"} | given
    found = estimate_absolute_pose(QUERY.points2d, QUERY.points3d, camera or QUERY.camera, **given)
    return found, write_query_page(folder / "query.html", "a <b>", found, None, SIZE)


def test_lines_connect_projections_and_keypoints(tmp_path):
    found, path = write(tmp_path)
    text = path.read_text()
    lines = np.array(re.findall(r'd="M([\d.-]+) ([\d.-]+)L([\d.-]+) ([\d.-]+)"', text), float)
    assert len(lines) == found.num_inliers and text.count("<g data") == 200
    off = np.linalg.norm(lines[:, 2:] - lines[:, :2], axis=1)
    assert off.max() <= found.max_error_px + 0.2 and np.median(off) == pytest.approx(found.noise_px, rel=0.3)
    assert "a &lt;b&gt;" in text and "<b>" not in text.split("<h1>")[1].split("</h1>")[0]


def test_an_image_that_was_not_found_has_a_page(tmp_path):
    found = estimate_absolute_pose(QUERY.points2d[:2], QUERY.points3d[:2], QUERY.camera)
    text = write_query_page(tmp_path / "none.html", "none", found, None, SIZE).read_text()
    assert not found.success and text.count("<g data") == 2 and "<path" not in text


@pytest.mark.slow
def test_improbable_matches_can_be_hidden(tmp_path, browser):
    found, path = write(tmp_path)
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(path.as_uri())
    shown = "[...document.querySelectorAll('svg g')].filter(each => each.style.display !== 'none').length"
    assert page.evaluate(shown) == 200
    page.locator("#least").evaluate("each => { each.value = '0.5'; each.dispatchEvent(new Event('input')); }")
    assert page.evaluate(shown) == (np.round(found.probabilities, 3) >= 0.5).sum()
    assert page.locator("#shown").evaluate("each => each.value") == "0.5" and not errors
    page.close()


def test_pages_of_large_photographs_are_small(tmp_path):
    found, _ = write(tmp_path)
    rows, columns = np.mgrid[:3000, :4000]
    image = np.stack([(rows // 8 + columns // 8) % 256] * 3, axis=2).astype(np.uint8)
    path = write_query_page(tmp_path / "large.html", "large", found, image, (4000, 3000))
    assert 100_000 < path.stat().st_size < 2_000_000


@pytest.mark.slow
def test_the_page_is_zoomed_and_read_and_runs_only_its_own_script(tmp_path, browser):
    found, path = write(tmp_path)
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    box = "document.querySelector('#stage svg').getAttribute('viewBox').split(' ').map(Number)"
    page.locator("#magnify").click()
    assert page.evaluate(box)[2:] == pytest.approx([SIZE[0] / 1.5, SIZE[1] / 1.5])
    page.locator("#whole").click()
    assert page.evaluate(box) == pytest.approx([0, 0, *SIZE])
    page.locator("#stage circle").first.hover(force=True)
    assert re.match(r"match \d+: probability", page.locator("#readout").inner_text())
    dial = page.evaluate("getComputedStyle(document.getElementById('dial-value')).strokeDasharray")
    assert float(dial.split("px")[0]) == pytest.approx(100 * found.confidence, abs=0.1)
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert "COLMAP" in page.locator("#facts").inner_text() and not said
    page.close()

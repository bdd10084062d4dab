"""The viewer in a real browser: results are copied in the formats of other programs, with all digits."""

import json

import numpy as np
import pytest

import caransac
from caransac.viewer import write_report
from caransac_lab.synthetic.hard_scenes import make_hard_pair

pytestmark = pytest.mark.slow

CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
WITHOUT_CLIPBOARD = """(works) => {
    window.clipboard = navigator.clipboard;
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    if (!works) document.execCommand = () => false;
}"""
SELECTED = """() => {
    const { value, selectionStart, selectionEnd } = document.activeElement;
    return value.slice(selectionStart, selectionEnd);
}"""


def copied(report, name):
    """Click a button and return the clipboard."""
    report.page.get_by_role("button", name=name, exact=True).click()
    report.wait_until("document.getElementById('copied').textContent !== ''")
    text = report.page.evaluate("navigator.clipboard.readText()")
    report.page.evaluate("document.getElementById('copied').textContent = ''")
    return text


def run(text):
    scope = {}
    exec(text, scope)
    return {name: value for name, value in scope.items() if isinstance(value, np.ndarray)}


def rotation_from_quaternion(w, x, y, z):
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_a_pose_is_copied_in_three_ways(open_report, report_path, pose):
    with open_report(report_path, **CLIPBOARD) as report:
        models = run(copied(report, "Python"))
        assert models.keys() == {"R", "t"}
        assert np.array_equal(models["R"], pose.R)
        assert np.array_equal(models["t"], pose.t)
        assert json.loads(copied(report, "JSON")) == {"R": pose.R.tolist(), "t": pose.t.tolist()}
        numbers = [float(word) for word in copied(report, "COLMAP").split(" ")]
        np.testing.assert_allclose(rotation_from_quaternion(*numbers[:4]), pose.R, atol=1e-12)
        assert numbers[4:] == pose.t.tolist()


def test_matrices_are_copied_by_their_names(open_report, tmp_path, pair):
    found = caransac.estimate_fundamental(pair.points1, pair.points2)
    plane = caransac.estimate_homography(pair.points1, pair.points2)
    assert found.success
    assert plane.success
    for result, expected in ((found, {"F": found.F}), (plane, {"H": plane.H})):
        path = write_report(tmp_path / "r.html", result, pair.points1, pair.points2)
        with open_report(path, **CLIPBOARD) as report:
            models = run(copied(report, "Python"))
            assert models.keys() == expected.keys()
            assert all(np.array_equal(models[name], matrix) for name, matrix in expected.items())
            assert report.page.get_by_role("button", name="COLMAP").is_hidden()


def test_a_rotation_is_copied_without_a_translation(open_report, tmp_path):
    turned = make_hard_pair("rotation", np.random.default_rng([0, 5]), 0.3)
    found = caransac.estimate(turned.points1, turned.points2, turned.camera, turned.camera)
    assert found.kind == "rotation"
    path = write_report(tmp_path / "r.html", found, turned.points1, turned.points2, camera1=turned.camera)
    with open_report(path, **CLIPBOARD) as report:
        assert json.loads(copied(report, "JSON")) == {"H": found.H.tolist(), "R": found.R.tolist()}
        assert report.page.get_by_role("button", name="COLMAP").is_hidden()


def test_without_a_result_there_are_no_copy_buttons(open_report, tmp_path, pair):
    few = pair.points1[:3], pair.points2[:3]
    failed = caransac.estimate_relative_pose(*few, pair.camera1, pair.camera2)
    path = write_report(tmp_path / "r.html", failed, *few, camera1=pair.camera1, camera2=pair.camera2)
    with open_report(path) as report:
        assert report.page.locator("#copies").is_hidden()


@pytest.mark.parametrize("selection_works", [True, False])
def test_pages_without_a_clipboard_copy_the_selection(open_report, report_path, pose, selection_works):
    with open_report(report_path, **CLIPBOARD) as report:
        report.page.evaluate(WITHOUT_CLIPBOARD, selection_works)
        report.page.get_by_role("button", name="JSON").click()
        report.wait_until("document.getElementById('copied').textContent !== ''")
        shown = report.page.locator("#copy-text")
        assert shown.is_hidden() is selection_works
        if selection_works:
            assert report.page.evaluate("document.activeElement.id") == "copy-json"
            text = report.page.evaluate("window.clipboard.readText()")
        else:
            assert report.text("copied") == "Copy the text below"
            text = report.page.evaluate(SELECTED)
        assert json.loads(text)["t"] == pose.t.tolist()


def test_the_frame_of_a_notebook_may_copy(browser, tmp_path, pair, pose):
    frame = caransac.show(pose, pair.points1, pair.points2)._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{frame}</body>", encoding="utf-8")
    with browser.new_context(**CLIPBOARD) as context:
        page = context.new_page()
        page.goto((tmp_path / "notebook.html").as_uri())
        inside = page.frame_locator("iframe")
        inside.get_by_role("button", name="JSON").click()
        inside.get_by_text("Copied as JSON").wait_for()
        page.bring_to_front()
        page.locator("body").evaluate("(body) => { body.tabIndex = 0; body.focus(); }")
        assert json.loads(page.evaluate("navigator.clipboard.readText()"))["t"] == pose.t.tolist()

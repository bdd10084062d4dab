"""The viewer in a real browser: every control works with mouse, touch and keyboard, on any screen."""

import re

import numpy as np
import pytest
from canvases import lonely

pytestmark = pytest.mark.slow


def test_a_tap_keeps_a_match_on_a_phone(open_report, report_path, pair, pose):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with open_report(report_path, **phone) as report:
        match = np.flatnonzero((lonely(pair.points1) > 30) & pose.inliers)[0]
        report.page.touchscreen.tap(*report.on_page(0, pair.points1[match]))
        report.settle()
        assert f"Match {match + 1} " in report.text("readout")
        assert report.canvas("overlay").any()
        upper, lower = report.frames()
        assert upper["y"] + upper["height"] < lower["y"]  # one above the other


@pytest.mark.parametrize("width", [320, 390, 700, 1000])
def test_nothing_is_wider_than_the_screen(open_report, report_path, width):
    with open_report(report_path, viewport={"width": width, "height": 800}, device_scale_factor=2) as report:
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
        for name in ("matches", "space", "distances", "histograms"):
            assert report.canvas(name).any()


@pytest.mark.parametrize("ratio", [1, 2])
def test_the_charts_are_as_high_as_the_result(open_report, report_path, ratio):
    with open_report(report_path, device_scale_factor=ratio) as report:
        ends = [report.page.locator(f"#{name}").bounding_box() for name in ("distance-text", "copies")]
        assert np.ptp([box["y"] + box["height"] for box in ends]) < 1
        for name in ("space", "distances"):
            shown = report.page.evaluate("(id) => document.getElementById(id).clientHeight", name)
            assert 270 <= shown <= 500
            assert report.canvas(name).shape[0] == pytest.approx(ratio * shown, abs=1)  # redrawn, not stretched


def test_the_tabulator_reaches_every_control(open_report, report_path):
    with open_report(report_path) as report:
        page = report.page
        order = []
        for _ in range(17):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        exaggerate = ["exaggerate"] * page.locator("#exaggerate").is_visible()
        expected = [
            "theme",
            "stage",
            "magnify",
            "shrink",
            "whole",
            "play",
            "round",
            "threshold",
            "lines",
            "copy-python",
            "copy-json",
            "copy-colmap",
            *exaggerate,
            "nearer",
            "farther",
            "home",
            "space",
        ]
        assert order[: len(expected)] == expected


def test_the_rounds_have_keys(open_report, report_path):
    with open_report(report_path) as report:
        report.page.focus("#round")
        report.press("ArrowLeft")
        assert "Round 3 of 4" in report.text("round-text")
        report.press("Home")
        assert "Before any model" in report.text("round-text")
        report.press("]", "]")
        assert "Round 2 of 4" in report.text("round-text")
        report.press("[")
        assert "Round 1 of 4" in report.text("round-text")
        report.press("?")
        assert report.page.get_by_text("on the images: walk through").is_visible()


def test_the_matches_have_keys(open_report, report_path, pose):
    with open_report(report_path) as report:
        report.page.focus("#round")
        report.press("Home", "]")
        report.page.focus("#stage")
        report.press("ArrowRight")
        best = int(re.search(r"Match (\d+)", report.text("readout"))[1]) - 1
        seen = np.rint(255 * pose.trace[1].probabilities)
        assert seen[best] == seen.max()
        first = report.canvas("overlay")
        assert first.any()
        report.press("ArrowRight")
        assert not np.array_equal(report.canvas("overlay"), first)
        report.press("ArrowLeft")
        assert np.array_equal(report.canvas("overlay"), first)
        report.press("Escape")
        assert not report.canvas("overlay").any()


def test_the_cameras_have_keys(open_report, report_path):
    with open_report(report_path) as report:
        report.page.focus("#space")
        before = report.canvas("space")
        for key in ("ArrowLeft", "ArrowDown", "+"):
            report.press(key)
            after = report.canvas("space")
            assert not np.array_equal(before, after), key
        report.press("0")
        assert np.array_equal(report.canvas("space"), before)


def test_rounds_fade_into_each_other(open_report, report_path, pose):
    with open_report(report_path, reduced_motion="no-preference") as report:
        probabilities = "() => Array.from(caransac.stage.probabilities)"
        report.page.clock.install()
        report.page.clock.pause_at(report.page.evaluate("Date.now()") + 1000)
        report.page.get_by_role("slider", name="Round").fill("0")
        report.page.clock.run_for(175)
        last, first = np.rint(255 * pose.probabilities), np.rint(255 * pose.trace[0].probabilities)
        share = (np.array(report.page.evaluate(probabilities)) - last) @ (first - last) / np.sum((first - last) ** 2)
        assert 0.2 < share < 0.8
        report.page.clock.run_for(400)
        np.testing.assert_allclose(report.page.evaluate(probabilities), first, atol=1e-3)
        report.page.clock.resume()


def test_the_rounds_play(open_report, report_path):
    with open_report(report_path) as report:
        report.page.clock.install()
        report.page.get_by_role("button", name="Play").click()
        seen = []
        for _ in range(5):
            seen.append(report.page.input_value("#round"))
            report.page.clock.run_for(1350)
        assert seen == ["0", "1", "2", "3", "4"]
        assert report.page.get_attribute("#play", "aria-pressed") == "false"


def test_the_cameras_turn_with_the_pointer(open_report, report_path):
    with open_report(report_path) as report:
        report.page.locator("#space").scroll_into_view_if_needed()
        report.settle()
        before = report.canvas("space")
        box = report.page.locator("#space").bounding_box()
        report.page.mouse.move(box["x"] + 100, box["y"] + 100)
        report.page.mouse.down()
        report.page.mouse.move(box["x"] + 180, box["y"] + 120, steps=4)
        report.page.mouse.up()
        report.settle()
        turned = report.canvas("space")
        assert np.mean(turned != before) > 0.005
        report.page.mouse.move(box["x"] + 50, box["y"] + 60)
        report.settle()
        assert np.array_equal(report.canvas("space"), turned)


def test_light_and_dark(open_report, report_path):
    def brightness(report):
        colour = report.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    for scheme, dark in (("light", False), ("dark", True)):
        with open_report(report_path, color_scheme=scheme) as report:
            assert (brightness(report) < 60) is dark
            charts = report.canvas("distances")
            report.page.get_by_role("button", name="Switch between light and dark").click()
            report.settle()
            assert (brightness(report) < 60) is not dark
            assert not np.array_equal(report.canvas("distances"), charts)
            report.press("t")
            assert np.array_equal(report.canvas("distances"), charts)

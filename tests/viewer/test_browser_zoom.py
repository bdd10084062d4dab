"""The viewer in a real browser: images can be zoomed and moved with wheel, mouse, touch and keys."""

import numpy as np
import pytest
from canvases import at, inside, lonely

import caransac
from caransac.viewer import write_report

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def zooms(report):
    return [frame["zoom"] for frame in report.frames()]


def pixel_at(report, image, place):
    """Return the pixel (2,) of an image at a position on the page."""
    origin, one = report.on_page(image, (0, 0)), report.on_page(image, (1, 1))
    return (np.array(place) - origin) / (one - origin)


def assert_fills_its_frame(report):
    for frame in report.frames():
        assert frame["left"] <= frame["x"] + 1e-6
        assert frame["top"] <= frame["y"] + 1e-6
        assert frame["left"] + 1024 * frame["scale"] >= frame["x"] + frame["width"] - 1e-6
        assert frame["top"] + 768 * frame["scale"] >= frame["y"] + frame["height"] - 1e-6


def test_the_wheel_zooms_about_the_pointer(open_report, report_path):
    with open_report(report_path) as report:
        page = report.page
        place = report.on_page(1, (700, 500))
        report.hover(1, (700, 500))
        page.mouse.wheel(0, -100)
        page.wait_for_timeout(50)
        assert zooms(report) == [1, 1]  # only the page scrolls
        page.keyboard.down("Control")
        page.mouse.wheel(0, -300)
        page.keyboard.up("Control")
        report.wait_until("caransac.stage.frames[1].zoom > 1")
        assert zooms(report)[0] == 1
        np.testing.assert_allclose(pixel_at(report, 1, place), (700, 500), atol=0.5)
        page.mouse.click(*place)  # after a click on the images, no key is needed
        before = zooms(report)[1]
        page.mouse.wheel(0, -100)
        report.wait_until(f"caransac.stage.frames[1].zoom > {before}")
        assert_fills_its_frame(report)
        report.press("0")
        assert zooms(report) == [1, 1]


def test_matches_follow_the_magnified_image(open_report, report_path, pair):
    with open_report(report_path) as report:
        report.press("l")
        report.page.focus("#stage")
        report.press("+", "+", "Shift+ArrowRight")
        assert zooms(report) == pytest.approx([2.25, 2.25])
        assert "×2.3 and ×2.3" in report.text("zoom-text")
        drawn, pictures = report.canvas("matches"), report.canvas("images")
        for image, points in enumerate((pair.points1, pair.points2)):
            places, frame = report.on_stage(image, points), report.frames()[image]
            corner, size = np.array([frame["x"], frame["y"]]), np.array([frame["width"], frame["height"]])
            seen = np.all((places > corner + 30) & (places < corner + size - 2), axis=1) & (lonely(places) > 8)
            assert 10 < seen.sum() < 120
            assert np.all(at(drawn, places[seen])[:, 3] > 60)
        # The picture has moved with the matches. Its grey level rises with x.
        left, right = (report.frames()[0]["x"] + offset for offset in (3, report.frames()[0]["width"] - 3))
        shown = at(pictures, [(left, 200), (right, 200)])[:, 0]
        columns = (np.array([left, right]) - report.frames()[0]["left"]) / report.frames()[0]["scale"]
        ratio = np.ptp(columns) / 1023
        assert np.ptp(shown) == pytest.approx(140 * ratio * 0.84, abs=5)  # dimmed by the overlay


def test_a_drag_moves_a_magnified_image_and_selects_no_match(open_report, report_path):
    with open_report(report_path) as report:
        page = report.page
        report.page.focus("#stage")
        report.press("+", "+")
        start = report.on_page(0, (500, 400))
        end = start + np.array([-60, 40])
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(*end, steps=5)
        page.mouse.up()
        report.settle()
        np.testing.assert_allclose(pixel_at(report, 0, end), (500, 400), atol=1)
        assert not page.evaluate("caransac.state.pinned")
        page.mouse.move(*start)  # the button is not pressed
        np.testing.assert_allclose(pixel_at(report, 0, end), (500, 400), atol=1)
        page.mouse.click(*start)
        assert page.evaluate("caransac.state.pinned")


def press_to_a_match_in_the_middle(report, pair):
    """Press an arrow key until a match is near the centre of both images. Return it. No border limits its zoom."""
    sizes = [(camera.width, camera.height) for camera in (pair.camera1, pair.camera2)]
    for _ in range(100):
        report.press("ArrowRight")
        match = report.page.evaluate("caransac.state.focus.match")
        places = [points[match] / size for points, size in zip((pair.points1, pair.points2), sizes, strict=True)]
        if np.all(np.abs(np.array(places) - 0.5) < 0.2):
            return match
    raise AssertionError("no match is in the middle")


def test_the_keys_zoom_about_the_match_that_is_kept(open_report, report_path, pair):
    with open_report(report_path) as report:
        report.page.focus("#stage")
        match = press_to_a_match_in_the_middle(report, pair)
        before = [report.on_stage(image, points[match]) for image, points in enumerate((pair.points1, pair.points2))]
        report.press("+", "+", "+")
        for image, points in enumerate((pair.points1, pair.points2)):
            place, frame = report.on_stage(image, points[match]), report.frames()[image]
            assert np.all(np.abs(place - before[image]) < 2)
            assert frame["zoom"] > 3
        for _ in range(12):  # the view follows the match
            report.press("ArrowRight")
            match = report.page.evaluate("caransac.state.focus.match")
            for image, points in enumerate((pair.points1, pair.points2)):
                place, frame = report.on_stage(image, points[match]), report.frames()[image]
                assert frame["x"] <= place[0] <= frame["x"] + frame["width"] or not inside(points[[match]], margin=0)[0]
        assert_fills_its_frame(report)
        report.press("0")
        assert zooms(report) == [1, 1]
        assert "Zoom:" in report.text("zoom-text")


def test_the_buttons_zoom_and_reset(open_report, report_path):
    with open_report(report_path) as report:
        whole = report.canvas("images")
        report.page.get_by_role("button", name="Zoom in").click()
        report.settle()
        assert zooms(report) == [1.5, 1.5]
        assert not np.array_equal(report.canvas("images"), whole)
        report.page.get_by_role("button", name="Zoom out").click()
        assert zooms(report) == [1, 1]
        for _ in range(20):
            report.page.get_by_role("button", name="Zoom in").click()
        scale = report.frames()[0]["scale"]
        assert scale == pytest.approx(12)  # the maximum
        report.page.get_by_role("button", name="Whole images").click()
        report.settle()
        assert np.array_equal(report.canvas("images"), whole)


def test_two_fingers_zoom_and_one_moves_on_a_phone(open_report, report_path):
    with open_report(report_path, **PHONE) as report:
        session = report.page.context.new_cdp_session(report.page)

        def touch(kind, *places):
            points = [{"x": float(x), "y": float(y), "id": i} for i, (x, y) in enumerate(places)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            report.settle()

        assert report.text("zoom-text") == "Zoom with two fingers"
        middle, reach = report.on_page(0, (512, 384)), np.array([20.0, 0])
        touch("touchStart", middle - reach, middle + reach)
        for factor in (1.5, 2, 3):
            touch("touchMove", middle - factor * reach, middle + factor * reach)
        touch("touchEnd")
        assert report.text("zoom-text") == "×3.0 and ×1.0 · drag to move"
        assert zooms(report) == pytest.approx([3, 1], rel=0.05)
        np.testing.assert_allclose(pixel_at(report, 0, middle), (512, 384), atol=3)
        before = report.page.evaluate("scrollY")
        touch("touchStart", middle)
        for step in (10, 30, 50):
            touch("touchMove", middle + np.array([0, step]))
        touch("touchEnd")
        np.testing.assert_allclose(pixel_at(report, 0, middle + np.array([0, 50])), (512, 384), atol=15)
        assert report.page.evaluate("scrollY") == before


@pytest.mark.parametrize(("wanted", "contrast"), [(None, True), (1600, False)])
def test_full_resolution_is_shown_on_request(open_report, tmp_path, wanted, contrast):
    """Columns of two pixels, alternately dark and light, become grey in an image of a third of the size."""
    image = np.zeros((3000, 4800), np.uint8)
    image[:, ::4] = image[:, 1::4] = 255
    pixel = [2400.0, 1500.0]
    found = caransac.estimate_fundamental([pixel], [pixel])
    path = write_report(tmp_path / "r.html", found, [pixel], [pixel], image1=image, image2=image, max_image_px=wanted)
    with open_report(path) as report:
        report.wait_until("caransac.stage.pictures.every((picture) => picture)")
        report.page.mouse.click(*report.on_page(0, pixel))
        report.settle()
        frame = report.frames()[0]
        radius = min(max(0.17 * frame["height"], 40), 84)
        middle = np.array([frame["x"] + radius + 8, frame["height"] - radius - 8])
        loupe = at(report.canvas("overlay"), middle + [(x, 20.5) for x in range(-30, 30)])[:, 0]
        assert bool(np.ptp(loupe) > 200) is contrast
        report.page.focus("#stage")
        report.press("Escape", *"++++++++")
        row = report.canvas("images")[round(frame["height"] / 2), 100:300, 0].astype(int)
        assert bool(np.ptp(row) > 150) is contrast

"""The viewer in a real browser: what is drawn is right, every control works, and nothing is fetched.

Needs Chromium (`make browser`). Where there is none the tests are skipped, but not where one must be: with CI or
CARANSAC_BROWSER set, its absence is a failure.
"""

import base64
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import replace

import cv2
import numpy as np
import pytest

import caransac
from caransac.camera import Camera
from caransac.geometry import (
    angle_between_deg,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    rotation_angle_deg,
    rotation_from_vector,
)
from caransac.synthetic import make_pair
from caransac.viewer import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = caransac.Options(keep_trace=True, early_stop=False)
# Both frames of the stage, the transform from CSS to device pixels, and the stage's place on the page.
LAYOUT = """() => {
    const box = caransac.stage.box.getBoundingClientRect();
    return {frames: caransac.stage.frames, left: box.left, top: box.top}
}"""
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


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


class Report:
    """A report opened in a page."""

    def __init__(self, page):
        self.page = page

    def settle(self):
        self.page.evaluate(NEXT_FRAME)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def slide(self, name, value):
        self.page.get_by_role("slider", name=name).fill(str(value))
        self.settle()

    def canvas(self, name):
        """A canvas as drawn: (rows, columns, 4) RGBA, in CSS pixels at a device pixel ratio of one."""
        url = self.page.evaluate("(name) => document.getElementById(name).toDataURL()", name)
        data = np.frombuffer(base64.b64decode(url.split(",")[1]), np.uint8)
        return cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), cv2.COLOR_BGRA2RGBA)

    def on_stage(self, side, pixels):
        """Places (n, 2) of pixels of an image in the stage's canvases."""
        frame = self.page.evaluate(LAYOUT)["frames"][side]
        return np.array([frame["x"], frame["y"]]) + (np.asarray(pixels) + 0.5) * frame["scale"]

    def on_page(self, side, pixel):
        layout = self.page.evaluate(LAYOUT)
        return self.on_stage(side, pixel) + np.array([layout["left"], layout["top"]])

    def hover(self, side, pixel):
        self.page.mouse.move(*self.on_page(side, pixel))
        self.settle()

    def text(self, name):
        return self.page.locator(f"#{name}").inner_text()


@contextmanager
def opened(browser, path, **settings):
    """The report in a new page; afterwards it must have fetched nothing and complained of nothing."""
    settings = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"} | settings
    with browser.new_context(**settings) as context:
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        report = Report(page)
        report.settle()
        yield report
        report.settle()
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]


@pytest.fixture(scope="module")
def pair():
    return make_pair(num_points=240, outlier_ratio=0.6, seed=5)


@pytest.fixture(scope="module")
def pose(pair):
    """A result whose first round had a model that is seen to differ from the last one's."""
    found = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio", options=OPTIONS
    )
    before, first, *later = found.trace
    turned = rotation_from_vector([0.08, 0.05, 0.1]) @ first.best[:9].reshape(3, 3)
    first = replace(first, best=np.concatenate([turned, first.best[9:]], axis=None))
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


def lonely(points):
    """How far (n,) each point is from the nearest other one."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.partition(distances, 1, axis=1)[:, 1]


def at(canvas, places):
    """Values (n, 4) of a canvas at places (n, 2)."""
    columns, rows = np.rint(np.atleast_2d(places) - 0.5).astype(int).T
    return canvas[rows, columns].astype(int)


def inside(points, size=(1024, 768), margin=30):
    return np.all((points > margin) & (points < np.array(size) - margin), axis=1)


def line_points(line, count=400, size=(1024, 768)):
    """Points of a line (3,) within an image."""
    a, b, c = line / np.linalg.norm(line[:2])
    foot = np.array(size) / 2 - (a * size[0] / 2 + b * size[1] / 2 + c) * np.array([a, b])
    points = foot + np.linspace(-1500, 1500, count)[:, None] * np.array([-b, a])
    return points[inside(points, size)]


def off_line(points, distance):
    """The same points beside their line, on both sides."""
    along = points[-1] - points[0]
    normal = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    return np.vstack([points + distance * normal, points - distance * normal])


def sag(points):
    """Distances (n,) of points to the line from the first to the last: how much a curve is bent."""
    chord = np.cross(homogeneous(points[0]), homogeneous(points[-1]))
    return np.abs(homogeneous(points) @ chord) / np.linalg.norm(chord[:2])


def assert_line_drawn(report, side, points, avoid):
    """Points of an image are on a line of the overlay, and those beside it are not; nor those near what to `avoid`."""
    overlay = report.canvas("overlay")

    def clear(candidates):
        candidates = candidates[inside(candidates)]
        return candidates[[avoid(candidate) > 40 for candidate in candidates]]

    on, off = clear(points), clear(off_line(points, 20))
    assert len(on) > 20
    assert len(off) > 20
    assert np.all(at(overlay, report.on_stage(side, on))[:, 3] > 200)
    assert np.all(at(overlay, report.on_stage(side, off))[:, 3] == 0)


def away_from_match(pair, match, side):
    """Distance of a pixel to the drawn match, which leaves each image through its edge towards the other one."""
    ends = np.array([pair.points1[match], pair.points2[match] + (1024 + 20, 0)]) - side * np.array([1024 + 20, 0])
    along = ends[1] - ends[0]

    def distance(pixel):
        share = np.clip((pixel - ends[0]) @ along / (along @ along), 0, 1)
        return np.linalg.norm(pixel - ends[0] - share * along)

    return distance


def test_the_matches_are_as_opaque_as_they_are_probable(browser, report_path, pair, pose):
    with opened(browser, report_path) as report:
        report.press("l")  # points alone, so that one can be looked at
        places = report.on_stage(0, pair.points1)
        free = (lonely(places) > 8) & inside(pair.points1, margin=1)
        for number, seen in enumerate(pose.trace):
            report.slide("Round", number)
            alpha = at(report.canvas("matches"), places[free])[:, 3] / 255
            np.testing.assert_allclose(alpha, 0.3 + 0.65 * seen.probabilities[free], atol=0.03)
        red, green, _, _ = at(report.canvas("matches"), places[free & pair.inliers & pose.inliers]).T
        assert np.all(green > red)
        red, green, _, _ = at(report.canvas("matches"), places[free & ~pair.inliers & ~pose.inliers]).T
        assert np.all(red > green)


def test_points_lie_on_what_they_are_points_of(browser, tmp_path):
    image, pixel = np.zeros((24, 32), np.uint8), np.array([20, 10])
    image[pixel[1], pixel[0]] = 255
    found = caransac.estimate_fundamental([pixel], [pixel])
    path = write_report(tmp_path / "r.html", found, [pixel], [pixel], image1=image, image2=image)
    with opened(browser, path) as report:
        report.page.wait_for_function("caransac.stage.pictures.every((picture) => picture)")
        report.settle()
        (place,) = np.rint(report.on_stage(0, [pixel])).astype(int)
        assert report.canvas("matches")[place[1], place[0], 3] > 0
        frame = report.page.evaluate(LAYOUT)["frames"][0]
        radius = min(max(0.17 * min(frame["width"], frame["height"]), 40), 84)
        report.page.mouse.click(*report.on_page(0, pixel))
        report.settle()
        loupe = np.rint([frame["x"] + radius + 8, frame["height"] - radius - 8]).astype(int)
        for canvas, (x, y), across in (("images", place, 8), ("overlay", loupe, 30)):
            light = report.canvas(canvas)[..., 0].astype(int)
            middle = light[y, x]
            sides = [light[y, x - across], light[y, x + across], light[y - across, x], light[y + across, x]]
            assert np.ptp(sides) < 0.2 * middle
            assert max(sides) < 0.9 * middle


def test_the_round_slider_and_the_lines_change_the_picture(browser, report_path):
    with opened(browser, report_path) as report:
        last = report.canvas("matches")
        assert "Round 4 of 4" in report.text("round-text")
        report.slide("Round", 0)
        first = report.canvas("matches")
        assert "Before any model" in report.text("round-text")
        assert "need a model" in report.text("distance-text")
        assert np.mean(first != last) > 0.05
        report.slide("Round", 4)
        assert np.array_equal(report.canvas("matches"), last)
        report.page.get_by_label("Lines").uncheck()
        report.settle()
        assert (report.canvas("matches")[..., 3] > 0).mean() < 0.3 * (last[..., 3] > 0).mean()


def test_the_threshold_hides_what_is_less_probable(browser, report_path, pair, pose):
    with opened(browser, report_path) as report:
        report.press("l")
        places = report.on_stage(1, pair.points2)
        free = (lonely(places) > 8) & inside(pair.points2, margin=1)
        report.slide("Hide below", 0.6)
        shown = np.rint(255 * pose.probabilities) >= 255 * 0.6
        assert 20 < shown.sum() < 200
        assert np.array_equal(at(report.canvas("matches"), places[free])[:, 3] > 0, shown[free])
        assert f"{shown.sum()} of 240" in report.text("threshold-text")
        hidden = np.flatnonzero(~shown & free)[0]
        report.hover(1, pair.points2[hidden])
        assert f"Match {hidden + 1} " not in report.text("readout")


@pytest.mark.parametrize("number", [1, 4])
def test_hovering_a_match_draws_its_epipolar_lines(browser, report_path, pair, pose, number):
    R, t = pose.trace[number].best[:9].reshape(3, 3), pose.trace[number].best[9:]
    E = pose.E if number == 4 else essential_from_pose(R, t)
    F = fundamental_from_essential(E, pair.camera1.K, pair.camera2.K)
    usable = np.minimum(lonely(pair.points1), lonely(pair.points2)) > 25
    long = [len(line_points(F @ x)) > 80 for x in homogeneous(pair.points1)]
    long &= np.array([len(line_points(F.T @ x)) > 80 for x in homogeneous(pair.points2)])
    usable &= long & inside(pair.points1) & inside(pair.points2)
    with opened(browser, report_path) as report:
        report.slide("Round", number)
        for match in (np.flatnonzero(usable & pose.inliers)[0], np.flatnonzero(usable & ~pose.inliers)[0]):
            report.hover(0, pair.points1[match])
            assert f"Match {match + 1} " in report.text("readout")
            in2 = line_points(F @ homogeneous(pair.points1[match]))
            in1 = line_points(F.T @ homogeneous(pair.points2[match]))
            assert_line_drawn(report, 1, in2, away_from_match(pair, match, 1))
            assert_line_drawn(report, 0, in1, away_from_match(pair, match, 0))
        report.page.mouse.move(5, 5)
        report.settle()
        assert not report.canvas("overlay").any()


def test_a_kept_match_stays_and_is_magnified(browser, report_path, pair):
    match = int(np.flatnonzero((lonely(pair.points1) > 25) & inside(pair.points1, margin=250))[0])
    with opened(browser, report_path) as report:
        report.hover(0, pair.points1[match])
        pointed = report.canvas("overlay")
        report.page.mouse.click(*report.on_page(0, pair.points1[match]))
        report.settle()
        kept = report.canvas("overlay")
        assert (kept[..., 3] > 0).sum() > 2 * (pointed[..., 3] > 0).sum()
        # In the middle of the loupe is the point's surrounding, a grey of the shaded image of this report.
        frame = report.page.evaluate(LAYOUT)["frames"][0]
        radius = 0.17 * frame["height"]
        places = np.array([frame["x"] + radius + 8, frame["height"] - radius - 8]) + 0.4 * radius * np.array(
            [[np.cos(angle), np.sin(angle)] for angle in np.linspace(0, 6, 20)]
        )
        shade = 60 + 140 * pair.points1[match, 0] / 1023
        assert np.sum(np.abs(at(kept, places)[:, :3] - shade).max(axis=1) < 12) > 10
        report.hover(0, pair.points1[match] + 60)
        assert np.array_equal(report.canvas("overlay"), kept)
        report.press("Escape")
        assert not report.canvas("overlay").any()


@pytest.mark.parametrize("side", [0, 1])
def test_hovering_a_pixel_draws_the_lines_of_its_epipolar_plane(browser, report_path, pair, pose, side):
    F = fundamental_from_essential(pose.E, pair.camera1.K, pair.camera2.K)
    F = F if side == 0 else F.T
    points = (pair.points1, pair.points2)[side]
    candidates = np.random.default_rng(0).uniform(100, 650, (200, 2))
    pixel = next(c for c in candidates if np.linalg.norm(points - c, axis=1).min() > 35)
    with opened(browser, report_path) as report:
        report.hover(side, pixel)
        assert f"of image {side + 1}" in report.text("readout")
        partner = F @ homogeneous(pixel)
        assert_line_drawn(report, 1 - side, line_points(partner), lambda _: np.inf)
        # The line through the pixel: every point of it has the same line in the other image.
        epipole = np.linalg.svd(F)[2][2]
        through = line_points(np.cross(epipole, homogeneous(pixel)))
        other = F @ homogeneous(through[0])
        assert abs(other @ partner) / np.linalg.norm(other) / np.linalg.norm(partner) == pytest.approx(1, abs=1e-6)
        assert_line_drawn(report, side, through, lambda point: np.linalg.norm(point - pixel))


@pytest.mark.parametrize(
    ("lens1", "lens2"),
    [
        (
            Camera("RADIAL", (921.6, 512, 384, -0.35, 0.12), 1024, 768),
            Camera("OPENCV", (930, 915, 505, 390, 0.25, -0.05, 2e-3, -1e-3), 1024, 768),
        ),
        (
            Camera("FULL_OPENCV", (920, 925, 512, 384, 0.1, 0.05, 1e-3, 0, 0, 0.4, 0.2, 0.1), 1024, 768),
            Camera("FULL_OPENCV", (930, 915, 505, 390, 0.1, -0.05, 2e-3, -1e-3, 0.2, -0.2, 0.1, 0), 1024, 768),
        ),
    ],
    ids=["polynomial", "rational"],
)
def test_lines_bend_with_the_lens(browser, tmp_path, pair, lens1, lens2):
    points1 = lens1.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1))
    points2 = lens2.rays_to_pixels(pair.camera2.pixels_to_rays(pair.points2))
    found = caransac.estimate_relative_pose(
        points1, points2, lens1, lens2, scores=pair.scores, score_kind="ratio", options=OPTIONS
    )
    path = write_report(tmp_path / "r.html", found, points1, points2, camera1=lens1, camera2=lens2)
    rays1, rays2 = lens1.pixels_to_rays(points1), lens2.pixels_to_rays(points2)

    def curve(line, camera):
        a, b, c = line / np.linalg.norm(line[:2])
        rays = -c * np.array([a, b]) + np.linspace(-0.9, 0.9, 400)[:, None] * np.array([-b, a])
        rays = rays[np.linalg.norm(rays, axis=1) < 0.9]  # before the lens folds
        pixels = camera.rays_to_pixels(rays)
        return pixels[inside(pixels)]

    def curves(match):
        return (
            curve(found.E.T @ homogeneous(rays2[match]), lens1),
            curve(found.E @ homogeneous(rays1[match]), lens2),
        )

    free = np.minimum(lonely(points1), lonely(points2)) > 25
    candidates = np.flatnonzero(free & ~found.inliers & inside(points1) & inside(points2))
    match = next(m for m in candidates if all(len(bent) > 100 and sag(bent).max() > 6 for bent in curves(m)))
    with opened(browser, path) as report:
        report.hover(0, points1[match])
        assert f"Match {match + 1} " in report.text("readout")
        overlay = report.canvas("overlay")
        for side, bent in enumerate(curves(match)):
            assert np.all(at(overlay, report.on_stage(side, bent))[:, 3] > 200)


def test_a_tap_keeps_a_match_on_a_phone(browser, report_path, pair, pose):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with opened(browser, report_path, **phone) as report:
        match = np.flatnonzero((lonely(pair.points1) > 30) & pose.inliers)[0]
        report.page.touchscreen.tap(*report.on_page(0, pair.points1[match]))
        report.settle()
        assert f"Match {match + 1} " in report.text("readout")
        assert report.canvas("overlay").any()
        upper, lower = report.page.evaluate(LAYOUT)["frames"]
        assert upper["y"] + upper["height"] < lower["y"]  # one above the other


@pytest.mark.parametrize("width", [320, 390, 700, 1000])
def test_nothing_is_wider_than_the_screen(browser, report_path, width):
    with opened(browser, report_path, viewport={"width": width, "height": 800}, device_scale_factor=2) as report:
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
        for name in ("matches", "space", "distances", "belief"):
            assert report.canvas(name).any()


def test_everything_can_be_done_with_the_keyboard(browser, report_path, pose):
    with opened(browser, report_path) as report:
        page = report.page
        order = []
        for _ in range(11):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        exaggerate = ["exaggerate"] * page.locator("#exaggerate").is_visible()
        expected = [
            "theme",
            "stage",
            "play",
            "round",
            "threshold",
            "lines",
            *exaggerate,
            "nearer",
            "farther",
            "home",
            "space",
        ]
        assert order[: len(expected)] == expected

        page.focus("#round")
        report.press("ArrowLeft")
        assert "Round 3 of 4" in report.text("round-text")
        report.press("Home")
        assert "Before any model" in report.text("round-text")
        report.press("]", "]")
        assert "Round 2 of 4" in report.text("round-text")
        report.press("[")
        assert "Round 1 of 4" in report.text("round-text")

        page.focus("#stage")
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

        page.focus("#space")
        before = report.canvas("space")
        for key in ("ArrowLeft", "ArrowDown", "+"):
            report.press(key)
            after = report.canvas("space")
            assert not np.array_equal(before, after), key
        report.press("0")
        assert np.array_equal(report.canvas("space"), before)

        report.press("?")
        assert page.get_by_text("on the images: walk through").is_visible()


def test_rounds_fade_into_each_other(browser, report_path, pose):
    with opened(browser, report_path, reduced_motion="no-preference") as report:
        belief = "() => Array.from(caransac.stage.belief)"
        report.page.clock.install()
        report.page.clock.pause_at(report.page.evaluate("Date.now()") + 1000)
        report.page.get_by_role("slider", name="Round").fill("0")
        report.page.clock.run_for(175)
        last, first = np.rint(255 * pose.probabilities), np.rint(255 * pose.trace[0].probabilities)
        share = (np.array(report.page.evaluate(belief)) - last) @ (first - last) / np.sum((first - last) ** 2)
        assert 0.2 < share < 0.8
        report.page.clock.run_for(400)
        np.testing.assert_allclose(report.page.evaluate(belief), first, atol=1e-3)
        report.page.clock.resume()


def test_the_rounds_play(browser, report_path):
    with opened(browser, report_path) as report:
        report.page.clock.install()
        report.page.get_by_role("button", name="Play").click()
        seen = []
        for _ in range(5):
            seen.append(report.page.input_value("#round"))
            report.page.clock.run_for(1350)
        assert seen == ["0", "1", "2", "3", "4"]
        assert report.page.get_attribute("#play", "aria-pressed") == "false"


def test_the_cameras_turn_with_the_pointer(browser, report_path):
    with opened(browser, report_path) as report:
        before = report.canvas("space")
        report.page.locator("#space").scroll_into_view_if_needed()
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


def test_differences_between_models_are_exaggerated_truly(browser, report_path, pose, rng):
    R, t = rotation_from_vector(0.02 * rng.normal(size=3)) @ pose.R, pose.t + 0.02 * rng.normal(size=3)
    t /= np.linalg.norm(t)
    poses = [{"R": np.ravel(R).tolist(), "t": t.tolist()}, {"R": np.ravel(pose.R).tolist(), "t": pose.t.tolist()}]
    with opened(browser, report_path) as report:
        for factor in (1, 5):
            shown = report.page.evaluate(
                "([pose, estimate, factor]) => caransac.exaggerate(pose, estimate, factor)", [*poses, factor]
            )
            turned, moved = np.reshape(shown["R"], (3, 3)), np.array(shown["t"])
            np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-12)
            expected = factor * rotation_angle_deg(R @ pose.R.T)
            assert rotation_angle_deg(turned @ pose.R.T) == pytest.approx(expected)
            expected = factor * angle_between_deg(R.T @ t, pose.R.T @ pose.t)
            assert angle_between_deg(turned.T @ moved, pose.R.T @ pose.t) == pytest.approx(expected)


def test_light_and_dark(browser, report_path):
    def brightness(report):
        colour = report.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    for scheme, dark in (("light", False), ("dark", True)):
        with opened(browser, report_path, color_scheme=scheme) as report:
            assert (brightness(report) < 60) is dark
            charts = report.canvas("distances")
            report.page.get_by_role("button", name="Switch between light and dark").click()
            report.settle()
            assert (brightness(report) < 60) is not dark
            assert not np.array_equal(report.canvas("distances"), charts)
            report.press("t")
            assert np.array_equal(report.canvas("distances"), charts)


def test_a_title_is_text(browser, tmp_path, pair, pose):
    title = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    path = write_report(
        tmp_path / "r.html", pose, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2, title=title
    )
    with opened(browser, path) as report:
        assert report.page.locator("h1").inner_text() == title
        assert report.page.title() == title
        assert report.page.evaluate("window.hurt === undefined")


def test_summary_of_a_pose(browser, report_path, pose):
    with opened(browser, report_path) as report:
        facts = report.text("facts")
        assert f"{pose.num_inliers} of 240" in facts
        assert f"{pose.num_hypotheses:,}" in facts
        assert f"{pose.t[2]:.5f}".replace("-", "−") in facts
        assert f"{round(100 * pose.confidence)}" in report.text("hero")
        assert report.page.locator("#failure").is_hidden()


def test_failures_show_the_reason_and_the_matches(browser, tmp_path, pair, rng):
    points1 = np.repeat(pair.points1[:1], 30, axis=0)
    points2 = rng.uniform(0, 700, (30, 2))
    found = caransac.estimate_relative_pose(points1, points2, pair.camera1, pair.camera2, options=OPTIONS)
    assert not found.success
    path = write_report(tmp_path / "r.html", found, points1, points2, camera1=pair.camera1, camera2=pair.camera2)
    with opened(browser, path) as report:
        assert "No relative pose was found" in report.text("failure")
        assert report.text("hero") == "No result"
        assert report.canvas("matches").any()


@pytest.mark.parametrize("case", ["fundamental", "with cameras", "classical", "without trace", "empty"])
def test_other_results_open_too(browser, tmp_path, pair, case):
    cameras = {"camera1": pair.camera1, "camera2": pair.camera2}
    points1, points2 = pair.points1, pair.points2
    if case in ("fundamental", "with cameras"):
        cameras = cameras if case == "with cameras" else {}
        found = caransac.estimate_fundamental(points1, points2, scores=pair.scores, score_kind="ratio", options=OPTIONS)
    else:
        options = caransac.Options(method="lm-lo" if case == "classical" else "ca-ransac")
        points1, points2 = (points1[:0], points2[:0]) if case == "empty" else (points1, points2)
        found = caransac.estimate_relative_pose(points1, points2, *cameras.values(), options=options)
    path = write_report(tmp_path / "r.html", found, points1, points2, **cameras)
    with opened(browser, path) as report:
        assert report.page.locator("#space-card").is_visible() is bool(cameras)
        assert report.page.locator("#round").is_visible() is (found.trace is not None)
        report.hover(0, (300, 300))
        assert report.canvas("overlay").any()
        assert bool(report.canvas("matches").any()) is (case != "empty")


def test_eight_thousand_matches_are_drawn_smoothly(browser, tmp_path):
    pair = make_pair(num_points=8000, outlier_ratio=0.6, seed=1)
    found = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio", options=OPTIONS
    )
    path = write_report(
        tmp_path / "r.html", found, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2
    )
    assert path.stat().st_size < 600_000
    with opened(browser, path) as report:
        milliseconds = report.page.evaluate("""() => {
            const start = performance.now();
            for (let i = 0; i < 5; i++) caransac.stage.drawMatches();
            document.getElementById("matches").getContext("2d").getImageData(0, 0, 1, 1); // wait for the pixels
            return (performance.now() - start) / 5;
        }""")
        assert milliseconds < 400  # without a graphics card, on a busy core

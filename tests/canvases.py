"""A report of the viewer opened in a browser, and the pixels of its canvases."""

import base64
from contextlib import contextmanager

import cv2
import numpy as np

import caransac

ALL_ROUNDS = caransac.Options(keep_trace=True, early_stop=False)  # runs all rounds, so that the report shows them
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def estimate_all_rounds(pair):
    """Estimate the pose of a synthetic pair, with all rounds."""
    points, cameras = (pair.points1, pair.points2), (pair.camera1, pair.camera2)
    scored = {"scores": pair.scores, "score_kind": pair.score_kind}
    return caransac.estimate_relative_pose(*points, *cameras, **scored, options=ALL_ROUNDS)


class ReportPage:
    """A report opened in a page."""

    def __init__(self, page):
        self.page = page

    def settle(self):
        self.page.evaluate(NEXT_FRAME)

    def wait_until(self, condition):
        """Wait until an expression is true in the page. The page's policy forbids Playwright's own function."""
        for _ in range(250):
            if self.page.evaluate(condition):
                return self.settle()
            self.page.wait_for_timeout(20)
        raise AssertionError(f"did not become true: {condition}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def slide(self, name, value):
        self.page.get_by_role("slider", name=name).fill(str(value))
        self.settle()

    def canvas(self, name):
        """Return the drawn canvas: (rows, columns, 4) RGBA, in CSS pixels at a device pixel ratio of one."""
        url = self.page.evaluate("(name) => document.getElementById(name).toDataURL()", name)
        data = np.frombuffer(base64.b64decode(url.split(",")[1]), np.uint8)
        return cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), cv2.COLOR_BGRA2RGBA)

    def frames(self):
        """Return the frames of both images on the stage in CSS pixels: {x, y, width, height, left, top, scale, ...}."""
        return self.page.evaluate("() => caransac.stage.frames")

    def on_stage(self, image, pixels):
        """Return the positions in the stage's canvases of pixels (n, 2) of image 0 or 1."""
        frame = self.frames()[image]
        return np.array([frame["left"], frame["top"]]) + (np.asarray(pixels) + 0.5) * frame["scale"]

    def on_page(self, image, pixel):
        """Return the position (2,) on the page of a pixel of image 0 or 1."""
        box = self.page.evaluate("() => caransac.stage.box.getBoundingClientRect().toJSON()")
        return self.on_stage(image, pixel) + np.array([box["left"], box["top"]])

    def hover(self, image, pixel):
        self.page.mouse.move(*self.on_page(image, pixel))
        self.settle()

    def text(self, name):
        return self.page.locator(f"#{name}").inner_text()

    def fact(self, name):
        """Return the value with this name in the summary of the result."""
        term = self.page.locator("#facts dt").get_by_text(name, exact=True)
        return term.locator("xpath=following-sibling::dd[1]").inner_text()


@contextmanager
def opened(browser, path, **settings):
    """Open the report in a new page. At the end, assert that it fetched nothing and logged no errors."""
    settings = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"} | settings
    with browser.new_context(**settings) as context:
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        report = ReportPage(page)
        report.settle()
        yield report
        report.settle()
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]


def lonely(points):
    """Return the distance (n,) of each point to the nearest other point."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.partition(distances, 1, axis=1)[:, 1]


def at(canvas, places):
    """Return the values (n, 4) of a canvas at positions (n, 2)."""
    columns, rows = np.rint(np.atleast_2d(places) - 0.5).astype(int).T
    return canvas[rows, columns].astype(int)


def inside(points, size=(1024, 768), margin=30):
    return np.all((points > margin) & (points < np.array(size) - margin), axis=1)

"""The pictures of the guides: a refined match, and a report on two rendered photographs, taken in Chromium.

    python docs/pictures.py

writes docs/patches.jpg and docs/viewer-*.jpg anew. Needs OpenCV, Playwright and Chromium (`make browser`). Look at what it wrote.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from playwright.sync_api import Browser, Locator, Page, sync_playwright

import caransac
from caransac.io import images
from caransac.viewer import write_report
from caransac_lab.render import render_pair

DOCS = Path(__file__).parent
DESKTOP = {"viewport": {"width": 1600, "height": 1388}, "device_scale_factor": 1.44}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 3, "has_touch": True, "is_mobile": True}
PLACE = (545.0, 640.0)  # in image 1; the match that is pointed at is near it


def make_report(path: Path) -> np.ndarray:
    """Write a report on two views of the courtyard; returns the point (2,) in image 1 of the match to point at."""
    pair = render_pair(2, width=1600, height=1200, angle_deg=38, scene="courtyard")
    points1, points2, ratios = images.match_images(pair.image1, pair.image2, max_features=1500)
    options = caransac.Options(keep_trace=True, early_stop=False)
    for _ in range(3):  # the first call loads the weights, which would show in the time
        result = caransac.estimate_relative_pose(
            points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio", options=options
        )
    write_report(
        path,
        result,
        points1,
        points2,
        camera1=pair.camera,
        camera2=pair.camera,
        image1=pair.image1,
        image2=pair.image2,
        scores=ratios,
        title="A courtyard",
    )
    assert result.probabilities is not None
    sure = points1[result.inliers & (result.probabilities > 0.9)]
    return sure[np.argmin(np.linalg.norm(sure - PLACE, axis=1))]


def on_page(page: Page, pixel: np.ndarray) -> tuple[float, float]:
    """Where the page shows a pixel of image 1."""
    frame = page.evaluate("() => caransac.stage.frames[0]")
    box = page.evaluate("() => caransac.stage.box.getBoundingClientRect().toJSON()")
    x, y = np.array([frame["left"] + box["left"], frame["top"] + box["top"]]) + (pixel + 0.5) * frame["scale"]
    return x, y


def save(shown: Page | Locator, name: str, width: int) -> None:
    """Write what a page or a part of it shows, `width` pixels wide."""
    picture = cv2.imdecode(np.frombuffer(shown.screenshot(), np.uint8), cv2.IMREAD_COLOR)
    size = width, round(picture.shape[0] * width / picture.shape[1])
    picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(DOCS / f"viewer-{name}.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 82, cv2.IMWRITE_JPEG_OPTIMIZE, 1])


def take(browser: Browser, report: Path, match: np.ndarray) -> None:
    """All pictures, each in a page of its own."""

    def open_page(**settings: Any) -> Page:
        page = browser.new_context(reduced_motion="reduce", **settings).new_page()
        page.goto(report.as_uri())
        page.wait_for_timeout(800)
        page.evaluate("() => document.getElementById('made').replaceChildren('caransac')")  # versions become old
        (page.touchscreen.tap if settings.get("has_touch") else page.mouse.click)(*on_page(page, match))
        page.wait_for_timeout(400)
        return page

    save(open_page(**DESKTOP), "desktop", 1152)
    save(open_page(**PHONE), "phone", 585)
    dark = open_page(**DESKTOP, color_scheme="dark")
    for _ in range(3):  # back to the first round
        dark.keyboard.press("[")
    dark.evaluate("() => document.activeElement.blur()")
    dark.wait_for_timeout(400)
    save(dark, "dark", 1152)
    zoomed = open_page(**DESKTOP)
    zoomed.focus("#stage")
    for _ in range(5):
        zoomed.keyboard.press("+")
    zoomed.wait_for_timeout(400)
    save(zoomed.locator("#stage"), "zoomed", 1152)
    save(zoomed.locator(".card", has=zoomed.locator("#facts")), "result", 480)


def draw_patches() -> None:
    """Draw a refined match: the patch in image 1, and in image 2 around the keypoint and around the refined point."""
    pair = render_pair(2, width=800, height=600, angle_deg=14, scene="courtyard")
    orb = cv2.ORB_create(2000)
    greys = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (pair.image1, pair.image2)]
    (keys1, one), (keys2, two) = (orb.detectAndCompute(grey, None) for grey in greys)
    found = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(one, two)
    points1, points2 = (
        np.array([keys[index].pt for keys, index in chosen])
        for chosen in ([(keys1, each.queryIdx) for each in found], [(keys2, each.trainIdx) for each in found])
    )
    result = caransac.estimate_relative_pose(points1, points2, pair.camera, pair.camera, images=greys)
    refinement = result.refinement
    assert refinement is not None and refinement.is_used
    moved = np.linalg.norm(refinement.points2 - refinement.given2, axis=1)
    clear = refinement.refined & (np.abs(moved - 1.5) < 0.2)
    index = int(np.argmax(np.where(clear, refinement.correlations, 0)))
    sides = [
        _patch(pair.image1, points1[index], "image 1"),
        _patch(pair.image2, refinement.given2[index], "image 2, keypoint"),
        _patch(pair.image2, refinement.points2[index], f"image 2, moved by {moved[index]:.1f} px"),
    ]
    gap = np.full((sides[0].shape[0], 12, 3), 255, np.uint8)
    cv2.imwrite(str(DOCS / "patches.jpg"), np.hstack([sides[0], gap, sides[1], gap, sides[2]])[:, :, ::-1])


def _patch(image: np.ndarray, point: np.ndarray, label: str) -> np.ndarray:
    """Return the pixels around a point, enlarged, with a cross at the point and a label."""
    pixels, scale = 15, 22
    around = cv2.getRectSubPix(image, (pixels, pixels), tuple(point.tolist()))
    large = cv2.resize(around, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
    middle = large.shape[0] // 2
    for start, end in (((middle, 40), (middle, -40)), ((40, middle), (-40, middle))):
        size = large.shape[0]
        cv2.line(large, tuple(v % size for v in start), tuple(v % size for v in end), (255, 210, 0), 2)
    title = np.full((34, large.shape[1], 3), 255, np.uint8)
    cv2.putText(title, label, (2, 24), cv2.FONT_HERSHEY_SIMPLEX, 0.62, (30, 30, 30), 1, cv2.LINE_AA)
    return np.vstack([title, large])


def main() -> None:
    """Make the report and take the pictures."""
    draw_patches()
    found = os.environ.get("CARANSAC_BROWSER") or next(filter(None, map(shutil.which, ("chromium", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        match = make_report(report)
        browser = playwright.chromium.launch(executable_path=found, args=[] if os.geteuid() else ["--no-sandbox"])
        take(browser, report, match)
        browser.close()


if __name__ == "__main__":
    main()

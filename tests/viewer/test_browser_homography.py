"""The viewer in a real browser: homographies of planes and rotations are shown without epipolar lines."""

import re

import numpy as np
import pytest
from canvases import ALL_ROUNDS, at, inside, lonely

import caransac
from caransac import Camera
from caransac.geometry import homogeneous, rotation_angle_deg
from caransac.viewer import write_report
from caransac_lab.synthetic.hard_scenes import CAMERA, make_hard_pair

pytestmark = pytest.mark.slow

SIZE = CAMERA.width, CAMERA.height


def pair_of(kind):
    return make_hard_pair(kind, np.random.default_rng([0, 5]), 0.3)


def moved(H, points):
    """Return the positions (n, 2) to which a homography moves points (n, 2)."""
    image = homogeneous(points) @ H.T
    return image[:, :2] / image[:, 2:]


def shown_numbers(text):
    return [float(value.replace("−", "-")) for value in re.findall(r"−?\d\.\d\de[+−-]\d+", text)]


@pytest.fixture(scope="module")
def plane():
    return pair_of("plane")


@pytest.fixture(scope="module")
def found(plane):
    return caransac.estimate_homography(plane.points1, plane.points2, options=ALL_ROUNDS)


@pytest.fixture(scope="module")
def plane_report(tmp_path_factory, plane, found):
    path = tmp_path_factory.mktemp("viewer") / "plane.html"
    return write_report(path, found, plane.points1, plane.points2, size1=SIZE, size2=SIZE)


def test_the_card_has_the_homography_and_no_cameras(open_report, plane_report, found):
    with open_report(plane_report) as report:
        assert "Homography from" in report.text("subtitle")
        assert "the homography is right" in report.text("hero-text")
        expected = [float(f"{value:.2e}") for value in found.H.ravel()]
        assert shown_numbers(report.fact("H").replace("e−", "e-")) == pytest.approx(expected, rel=1e-9)
        assert report.page.locator("#space-card").is_hidden()
        assert "Transfer error" in report.text("distance-text")
        assert f"{found.num_inliers} within the threshold" in report.text("distance-text")
        assert "Rotation" not in report.text("facts")


def test_matches_of_a_plane_have_the_colours_of_their_probabilities(open_report, plane_report, plane, found):
    with open_report(plane_report) as report:
        report.press("l")
        places = report.on_stage(0, plane.points1)
        free = (lonely(places) > 8) & inside(plane.points1, SIZE)
        for number, seen in enumerate(found.trace):
            report.slide("Round", number)
            alpha = at(report.canvas("matches"), places[free])[:, 3] / 255
            np.testing.assert_allclose(alpha, 0.3 + 0.65 * seen.probabilities[free], atol=0.03)


@pytest.mark.parametrize("image", [0, 1])
def test_a_pixel_has_its_partner_and_no_line(open_report, plane_report, plane, found, image):
    H = found.H if image == 0 else np.linalg.inv(found.H)
    points = (plane.points1, plane.points2)[image]
    candidates = np.random.default_rng(1).uniform(60, np.array(SIZE) - 60, (500, 2))
    candidates = candidates[inside(moved(H, candidates), SIZE)]
    pixel = max(candidates, key=lambda c: np.linalg.norm(points - c, axis=1).min())
    partner = moved(H, pixel[None])[0]
    with open_report(plane_report) as report:
        report.hover(image, pixel)
        shown = re.search(rf"image {2 - image} is at \(([\d.]+), ([\d.]+)\)", report.text("readout"))
        scale = report.frames()[0]["scale"]  # the pointer has integer screen coordinates
        np.testing.assert_allclose([float(shown[1]), float(shown[2])], partner, atol=3 / scale)
        overlay = report.canvas("overlay")[..., 3] > 0
        (x, y), (u, v) = report.on_stage(image, pixel), report.on_stage(1 - image, partner)
        rows, columns = np.nonzero(overlay)
        near = np.minimum(np.hypot(columns - x, rows - y), np.hypot(columns - u, rows - v))
        assert near.max() < 16  # a ring and a cross, nothing else
        assert overlay[round(v) - 3 : round(v) + 3, round(u) - 3 : round(u) + 3].any()


def test_a_match_shows_the_positions_by_the_homography(open_report, plane_report, plane, found):
    wrong = ~found.inliers & inside(plane.points1, SIZE) & inside(plane.points2, SIZE)
    forth, back = moved(found.H, plane.points1), moved(np.linalg.inv(found.H), plane.points2)
    wrong &= inside(forth, SIZE) & inside(back, SIZE) & (lonely(plane.points1) > 25)
    match = np.flatnonzero(wrong & (np.linalg.norm(forth - plane.points2, axis=1) > 100))[0]
    with open_report(plane_report) as report:
        report.hover(0, plane.points1[match])
        assert f"Match {match + 1} " in report.text("readout")
        overlay = report.canvas("overlay")
        for image, partner in ((1, forth[match]), (0, back[match])):
            place = report.on_stage(image, partner)
            arms = [place + way for way in ((3, 3), (-3, -3), (3, -3), (-3, 3))]
            assert np.all(at(overlay, arms)[:, 3] > 200)


def assert_homography_of(report, kind, H):
    assert report.fact("Geometry").startswith(f"{kind}: ")
    expected = [float(f"{value:.2e}") for value in H.ravel()]
    assert shown_numbers(report.fact("H").replace("e−", "e-")) == pytest.approx(expected, rel=1e-9)
    assert report.page.locator("#space-card").is_hidden()
    report.hover(0, (SIZE[0] / 2, SIZE[1] / 2))
    assert "epipolar" not in report.text("readout")


def test_a_plane_that_was_found_is_shown_as_one(open_report, tmp_path, plane):
    geometry = caransac.estimate(plane.points1, plane.points2, options=ALL_ROUNDS)
    assert geometry.kind == "homography"
    path = write_report(tmp_path / "r.html", geometry, plane.points1, plane.points2, size1=SIZE, size2=SIZE)
    with open_report(path) as report:
        assert_homography_of(report, "homography", geometry.H)
        assert f"{geometry.num_inliers:,} of" in report.fact("Inliers")


def test_a_rotation_has_its_angle_and_no_translation(open_report, tmp_path):
    pair = pair_of("rotation")
    cameras = {"camera1": pair.camera, "camera2": pair.camera}
    geometry = caransac.estimate(pair.points1, pair.points2, pair.camera, pair.camera, options=ALL_ROUNDS)
    assert geometry.kind == "rotation"
    path = write_report(tmp_path / "r.html", geometry, pair.points1, pair.points2, **cameras)
    with open_report(path) as report:
        assert_homography_of(report, "rotation", geometry.H)
        assert report.fact("Rotation") == f"{rotation_angle_deg(geometry.R):.2f}°"
        assert report.page.locator("#facts dt").get_by_text("t", exact=True).count() == 0
        assert report.fact("Focal length 1").endswith("px, taken as exact")


def test_partners_bend_with_the_lens(open_report, tmp_path):
    pair = pair_of("rotation")
    focal, *centre = pair.camera.params
    lens = Camera("SIMPLE_RADIAL", (focal, *centre, -0.1), *SIZE)
    points1, points2 = (
        lens.rays_to_pixels(pair.camera.pixels_to_rays(points)) for points in (pair.points1, pair.points2)
    )
    geometry = caransac.estimate(points1, points2, lens, lens, options=ALL_ROUNDS)
    assert geometry.kind == "rotation"
    path = write_report(tmp_path / "r.html", geometry, points1, points2, camera1=lens, camera2=lens)
    rays = homogeneous(lens.pixels_to_rays(points1[geometry.inliers])) @ geometry.R.T
    expected = lens.rays_to_pixels(rays[:, :2] / rays[:, 2:])
    with open_report(path) as report:
        shown = report.page.evaluate(
            "(pixels) => pixels.map((pixel) => caransac.transfer(caransac.report.summary.H, 0, pixel))",
            points1[geometry.inliers].tolist(),
        )
        assert np.median(np.linalg.norm(np.array(shown, float) - expected, axis=1)) < 0.5
        assert np.median(np.linalg.norm(np.array(shown, float) - points2[geometry.inliers], axis=1)) < 2
        content = report.page.evaluate("caransac.rounds[caransac.rounds.length - 1].numInliers")
        assert content == geometry.num_inliers  # the page uses the same distances as the estimation


def test_a_failed_homography_is_reported(open_report, tmp_path):
    points = np.array([[10.0, 10], [20, 20], [30, 30]])
    failed = caransac.estimate_homography(points, points)
    with open_report(write_report(tmp_path / "r.html", failed, points, points)) as report:
        assert "No homography was found" in report.text("failure")
        assert report.canvas("matches").any()


def test_a_notebook_shows_homographies(tmp_path, plane, found):
    path = write_report(tmp_path / "r.html", found, plane.points1, plane.points2)
    assert caransac.show(found, plane.points1, plane.points2).page == path.read_text(encoding="utf-8")

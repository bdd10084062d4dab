"""The viewer in a real browser: epipolar lines are drawn at the right places, and curved if the lens distorts."""

import numpy as np
import pytest
from canvases import ALL_ROUNDS, at, inside, lonely

import caransac
from caransac.camera import Camera
from caransac.geometry import essential_from_pose, fundamental_from_essential, homogeneous, split_pose
from caransac.viewer import write_report

pytestmark = pytest.mark.slow


def line_points(line, count=400, size=(1024, 768)):
    """Return points of a line (3,) within an image."""
    a, b, c = line / np.linalg.norm(line[:2])
    foot = np.array(size) / 2 - (a * size[0] / 2 + b * size[1] / 2 + c) * np.array([a, b])
    points = foot + np.linspace(-1500, 1500, count)[:, None] * np.array([-b, a])
    return points[inside(points, size)]


def off_line(points, distance):
    """Return the same points moved off their line, on both sides."""
    along = points[-1] - points[0]
    normal = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    return np.vstack([points + distance * normal, points - distance * normal])


def sag(points):
    """Return the distances (n,) of points to the chord from the first to the last: the curvature of a line."""
    chord = np.cross(homogeneous(points[0]), homogeneous(points[-1]))
    return np.abs(homogeneous(points) @ chord) / np.linalg.norm(chord[:2])


def assert_line_drawn(report, image, points, avoid):
    """Assert that points of an image are on a drawn line and points beside it are not; ignore places near `avoid`."""
    overlay = report.canvas("overlay")

    def clear(candidates):
        candidates = candidates[inside(candidates)]
        return candidates[[avoid(candidate) > 40 for candidate in candidates]]

    on, off = clear(points), clear(off_line(points, 20))
    assert len(on) > 20
    assert len(off) > 20
    assert np.all(at(overlay, report.on_stage(image, on))[:, 3] > 200)
    assert np.all(at(overlay, report.on_stage(image, off))[:, 3] == 0)


def away_from_match(pair, match, image):
    """Return a function for the distance of a pixel to the drawn match, which connects both images."""
    ends = np.array([pair.points1[match], pair.points2[match] + (1024 + 20, 0)]) - image * np.array([1024 + 20, 0])
    along = ends[1] - ends[0]

    def distance(pixel):
        share = np.clip((pixel - ends[0]) @ along / (along @ along), 0, 1)
        return np.linalg.norm(pixel - ends[0] - share * along)

    return distance


@pytest.mark.parametrize("number", [1, 4])
def test_hovering_a_match_draws_its_epipolar_lines(open_report, report_path, pair, pose, number):
    R, t = split_pose(pose.trace[number].best)
    E = pose.E if number == 4 else essential_from_pose(R, t)
    F = fundamental_from_essential(E, pair.camera1.K, pair.camera2.K)
    usable = np.minimum(lonely(pair.points1), lonely(pair.points2)) > 25
    long = [len(line_points(F @ x)) > 80 for x in homogeneous(pair.points1)]
    long &= np.array([len(line_points(F.T @ x)) > 80 for x in homogeneous(pair.points2)])
    usable &= long & inside(pair.points1) & inside(pair.points2)
    with open_report(report_path) as report:
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


@pytest.mark.parametrize("image", [0, 1])
def test_hovering_a_pixel_draws_the_lines_of_its_epipolar_plane(open_report, report_path, pair, pose, image):
    F = fundamental_from_essential(pose.E, pair.camera1.K, pair.camera2.K)
    F = F if image == 0 else F.T
    points = (pair.points1, pair.points2)[image]
    candidates = np.random.default_rng(0).uniform(100, 650, (200, 2))
    pixel = next(c for c in candidates if np.linalg.norm(points - c, axis=1).min() > 35)
    with open_report(report_path) as report:
        report.hover(image, pixel)
        assert f"of image {image + 1}" in report.text("readout")
        partner = F @ homogeneous(pixel)
        assert_line_drawn(report, 1 - image, line_points(partner), lambda _: np.inf)
        # Every point on the line through the pixel has the same line in the other image.
        epipole = np.linalg.svd(F)[2][2]
        through = line_points(np.cross(epipole, homogeneous(pixel)))
        other = F @ homogeneous(through[0])
        assert abs(other @ partner) / np.linalg.norm(other) / np.linalg.norm(partner) == pytest.approx(1, abs=1e-6)
        assert_line_drawn(report, image, through, lambda point: np.linalg.norm(point - pixel))


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
        (
            Camera("OPENCV_FISHEYE", (720, 715, 505, 390, 0.02, -0.01, 0.002, -0.001), 1024, 768),
            Camera("THIN_PRISM_FISHEYE", (730, 700, 512, 384, 0.03, 0, 2e-3, 1e-3, 0, 0, 3e-3, -2e-3), 1024, 768),
        ),
        (
            Camera("FOV", (720, 715, 505, 390, 0.8), 1024, 768),
            Camera("DIVISION", (800, 790, 512, 384, -0.2), 1024, 768),
        ),
        (
            Camera("EUCM", (720, 715, 505, 390, 0.6, 1.1), 1024, 768),
            Camera("FOV", (800, 790, 512, 384, 0.9), 1024, 768),
        ),
    ],
    ids=["polynomial", "rational", "fisheye", "closed form", "EUCM"],
)
def test_lines_bend_with_the_lens(open_report, tmp_path, pair, lens1, lens2):
    points1 = lens1.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1))
    points2 = lens2.rays_to_pixels(pair.camera2.pixels_to_rays(pair.points2))
    found = caransac.estimate_relative_pose(
        points1, points2, lens1, lens2, scores=pair.scores, score_kind="ratio", options=ALL_ROUNDS
    )
    path = write_report(tmp_path / "r.html", found, points1, points2, camera1=lens1, camera2=lens2)
    rays1, rays2 = lens1.pixels_to_rays(points1), lens2.pixels_to_rays(points2)

    def curve(line, camera):
        a, b, c = line / np.linalg.norm(line[:2])
        rays = -c * np.array([a, b]) + np.linspace(-0.9, 0.9, 400)[:, None] * np.array([-b, a])
        rays = rays[np.linalg.norm(rays, axis=1) < 0.9]  # inside the invertible range of the lens
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
    with open_report(path) as report:
        report.hover(0, points1[match])
        assert f"Match {match + 1} " in report.text("readout")
        overlay = report.canvas("overlay")
        for image, bent in enumerate(curves(match)):
            assert np.all(at(overlay, report.on_stage(image, bent))[:, 3] > 200)

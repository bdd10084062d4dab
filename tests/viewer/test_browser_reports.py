"""The viewer in a real browser: contents of the reports of all kinds of results."""

from dataclasses import replace

import numpy as np
import pytest
from canvases import ALL_ROUNDS

import caransac
from caransac.geometry import angle_between_deg, rotation_angle_deg, rotation_from_vector
from caransac.viewer import write_report

pytestmark = pytest.mark.slow


def test_differences_between_models_are_exaggerated_truly(open_report, report_path, pose, rng):
    R, t = rotation_from_vector(0.02 * rng.normal(size=3)) @ pose.R, pose.t + 0.02 * rng.normal(size=3)
    t /= np.linalg.norm(t)
    poses = [{"R": np.ravel(R).tolist(), "t": t.tolist()}, {"R": np.ravel(pose.R).tolist(), "t": pose.t.tolist()}]
    with open_report(report_path) as report:
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


def test_a_title_is_text(open_report, tmp_path, pair, pose):
    title = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    path = write_report(
        tmp_path / "r.html", pose, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2, title=title
    )
    with open_report(path) as report:
        assert report.page.locator("h1").inner_text() == title
        assert report.page.title() == title
        assert report.page.evaluate("window.hurt === undefined")


def test_summary_of_a_pose(open_report, report_path, pose):
    with open_report(report_path) as report:
        facts = report.text("facts")
        assert f"{pose.num_inliers} of 240" in facts
        assert f"{pose.num_hypotheses:,}" in facts
        assert f"{pose.t[2]:.5f}".replace("-", "−") in facts
        assert str(min(round(100 * pose.confidence), 99)) in report.text("hero")
        assert report.page.locator("#failure").is_hidden()


@pytest.mark.parametrize(
    ("confidence", "text"), [(0.0, "0 %"), (0.001, "< 1 %"), (0.012, "1 %"), (0.996, "> 99 %"), (1.0, "100 %")]
)
def test_extreme_percentages_are_not_rounded_to_0_or_100(open_report, tmp_path, pair, pose, confidence, text):
    doubted = replace(pose, confidence=confidence)
    with open_report(write_report(tmp_path / "r.html", doubted, pair.points1, pair.points2)) as report:
        assert report.text("hero") == text
        assert f"{text} confident" in report.text("subtitle")


def test_an_early_stop_is_shown_as_early(open_report, tmp_path, pair, pose):
    early = replace(pose, stop_reason="early_stop")
    with open_report(write_report(tmp_path / "r.html", early, pair.points1, pair.points2)) as report:
        assert report.fact("Stopped") == "early"


def test_noise_threshold_and_parallax_are_shown(open_report, report_path, pose):
    with open_report(report_path) as report:
        assert report.fact("Noise") == f"{pose.noise_px:.2f} px"
        assert report.fact("Threshold") == f"{pose.max_error_px:.2f} px"
        assert report.fact("Parallax") == f"{pose.parallax_px:.1f} px"


def test_focal_lengths_are_shown_with_deviations(open_report, report_path, tmp_path, pair):
    with open_report(report_path) as report:
        assert "921.6 px, taken as exact" in report.text("facts")
    size = (1024, 768)
    found = caransac.estimate_relative_pose(
        pair.points1, pair.points2, image_size1=size, image_size2=size, scores=pair.scores, score_kind="ratio"
    )
    path = write_report(tmp_path / "r.html", found, pair.points1, pair.points2, camera_source2="by a guess")
    with open_report(path) as report:
        facts = report.text("facts")
        for camera, source in ((found.camera1, "estimated from the matches"), (found.camera2, "by a guess")):
            deviation = float(f"{100 * camera.focal_deviation:.2g}")
            assert f"{camera.mean_focal:.1f} px ± {deviation:g} %, {source}" in facts
        assert report.page.locator("#space-card").is_visible()


def test_the_scale_of_the_distances_is_not_cut_off(open_report, tmp_path, pair, pose):
    wide = replace(pose, max_error_px=0.2468)  # the axis ends at 1.23 px
    with open_report(write_report(tmp_path / "r.html", wide, pair.points1, pair.points2)) as report:
        labels = report.canvas("distances")[-18:, :, 3]
        assert labels[:, -60:].any()
        assert not labels[:, -1].any()


def test_failures_show_the_reason_and_the_matches(open_report, tmp_path, pair, rng):
    points1 = np.repeat(pair.points1[:1], 30, axis=0)
    points2 = rng.uniform(0, 700, (30, 2))
    found = caransac.estimate_relative_pose(points1, points2, pair.camera1, pair.camera2, options=ALL_ROUNDS)
    assert not found.success
    path = write_report(tmp_path / "r.html", found, points1, points2, camera1=pair.camera1, camera2=pair.camera2)
    with open_report(path) as report:
        assert "No relative pose was found" in report.text("failure")
        assert report.text("hero") == "No result"
        assert report.canvas("matches").any()


@pytest.mark.parametrize("case", ["fundamental", "with cameras", "classical", "without trace", "empty"])
def test_other_results_open_too(open_report, tmp_path, pair, case):
    cameras = {"camera1": pair.camera1, "camera2": pair.camera2}
    points1, points2 = pair.points1, pair.points2
    if case in ("fundamental", "with cameras"):
        cameras = cameras if case == "with cameras" else {}
        found = caransac.estimate_fundamental(
            points1, points2, scores=pair.scores, score_kind="ratio", options=ALL_ROUNDS
        )
    else:
        options = caransac.Options(method="lm-lo" if case == "classical" else "ca-ransac")
        points1, points2 = (points1[:0], points2[:0]) if case == "empty" else (points1, points2)
        found = caransac.estimate_relative_pose(points1, points2, *cameras.values(), options=options)
    path = write_report(tmp_path / "r.html", found, points1, points2, **cameras)
    with open_report(path) as report:
        assert report.page.locator("#space-card").is_visible() is bool(cameras)
        assert report.page.locator("#round").is_visible() is (found.trace is not None)
        report.hover(0, (300, 300))
        assert report.canvas("overlay").any()
        assert bool(report.canvas("matches").any()) is (case != "empty")

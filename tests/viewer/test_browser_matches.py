"""The viewer in a real browser: matches and rounds are drawn correctly."""

from dataclasses import replace

import numpy as np
import pytest
from canvases import at, estimate_all_rounds, inside, lonely
from photographs import photograph

import caransac
from caransac import Rival
from caransac.synthetic import make_pair
from caransac.viewer import write_report

pytestmark = pytest.mark.slow


def test_the_opacity_of_matches_is_their_probability(open_report, report_path, pair, pose):
    with open_report(report_path) as report:
        report.press("l")  # hides the lines, so that single points are visible
        places = report.on_stage(0, pair.points1)
        free = (lonely(places) > 8) & inside(pair.points1, margin=1)
        for number, seen in enumerate(pose.trace):
            report.slide("Round", number)
            alpha = at(report.canvas("matches"), places[free])[:, 3] / 255
            np.testing.assert_allclose(alpha, 0.3 + 0.65 * seen.probabilities[free], atol=0.03)
        red, green, _, _ = at(report.canvas("matches"), places[free & pair.inliers & (pose.probabilities > 0.7)]).T
        assert np.all(green > red)
        red, green, _, _ = at(report.canvas("matches"), places[free & ~pair.inliers & (pose.probabilities < 0.3)]).T
        assert np.all(red > green)


def test_points_are_drawn_at_their_pixels(open_report, tmp_path):
    image, pixel = np.zeros((24, 32), np.uint8), np.array([20, 10])
    image[pixel[1], pixel[0]] = 255
    found = caransac.estimate_fundamental([pixel], [pixel])
    path = write_report(tmp_path / "r.html", found, [pixel], [pixel], image1=image, image2=image)
    with open_report(path) as report:
        report.wait_until("caransac.stage.pictures.every((picture) => picture)")
        report.settle()
        (place,) = np.rint(report.on_stage(0, [pixel])).astype(int)
        assert report.canvas("matches")[place[1], place[0], 3] > 0
        frame = report.frames()[0]
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


def test_nothing_covers_the_numbers_of_the_images(open_report, tmp_path):
    places = np.stack(np.meshgrid(np.arange(0.0, 40), np.arange(0.0, 40)), axis=-1).reshape(-1, 2)
    found = caransac.estimate_fundamental(places, places)
    path = write_report(tmp_path / "r.html", found, places, places, size1=(400, 300), size2=(400, 300))
    with open_report(path) as report:
        drawn = report.canvas("matches")[..., 3]
        for frame in report.frames():
            x, y = round(frame["x"]), round(frame["y"])
            assert not drawn[y + 9 : y + 27, x + 13 : x + 23].any()
            assert drawn[y + 32 : y + 36, x + 9 : x + 27].all()  # below the number, matches are drawn as usual


def test_the_round_slider_and_the_lines_change_the_picture(open_report, report_path):
    with open_report(report_path) as report:
        last = report.canvas("matches")
        assert "Round 4 of 4" in report.text("round-text")
        report.slide("Round", 0)
        first = report.canvas("matches")
        assert "Before any model" in report.text("round-text")
        assert "need a model" in report.text("distance-text")
        assert np.mean(first != last) > 0.05
        report.slide("Round", 4)
        assert np.array_equal(report.canvas("matches"), last)
        report.page.get_by_label("Lines").select_option("none")
        report.settle()
        assert (report.canvas("matches")[..., 3] > 0).mean() < 0.3 * (last[..., 3] > 0).mean()


def test_few_lines_are_drawn_all_over_the_image_and_more_on_request(open_report, tmp_path):
    pair = make_pair(num_points=3000, outlier_ratio=0.3, seed=11)
    found = caransac.estimate_fundamental(pair.points1, pair.points2)
    path = write_report(tmp_path / "r.html", found, pair.points1, pair.points2, size1=(1024, 768), size2=(1024, 768))
    joined = """() => { const s = caransac.stage;
        return s.spread(s.order().filter((match) => s.probabilities[match] >= 1), s.maxLines); }"""
    with open_report(path) as report:
        chosen = np.array(list(report.page.evaluate(f"() => Array.from(({joined})())")))
        assert len(chosen) == 200 == report.page.evaluate("caransac.stage.numLines")
        cells = np.clip(pair.points1[chosen] * 8 // (1024, 768), 0, 7).astype(int) @ (1, 8)
        likely = np.rint(255 * found.probabilities)
        for cell in range(64):  # every part has its most probable matches, and about equally many
            members = np.flatnonzero(np.clip(pair.points1 * 8 // (1024, 768), 0, 7).astype(int) @ (1, 8) == cell)
            members = members[likely[members] >= 1]
            mine = chosen[cells == cell]
            assert len(mine) >= min(3, len(members))
            if 0 < len(mine) < len(members):
                assert likely[mine].min() >= np.sort(likely[members])[-len(mine)]
        for option, count in (("1,000", 1000), ("all", int((likely >= 1).sum())), ("none", 0)):
            report.page.get_by_label("Lines").select_option(option)
            report.settle()
            assert report.page.evaluate("caransac.stage.numLines") == count
        report.press("l")
        assert report.page.evaluate("caransac.stage.numLines") > 0


def test_the_threshold_hides_less_probable_matches(open_report, report_path, pair, pose):
    with open_report(report_path) as report:
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


def test_a_kept_match_stays_and_is_magnified(open_report, report_path, pair):
    match = int(np.flatnonzero((lonely(pair.points1) > 25) & inside(pair.points1, margin=250))[0])
    with open_report(report_path) as report:
        report.hover(0, pair.points1[match])
        pointed = report.canvas("overlay")
        report.page.mouse.click(*report.on_page(0, pair.points1[match]))
        report.settle()
        kept = report.canvas("overlay")
        assert (kept[..., 3] > 0).sum() > 2 * (pointed[..., 3] > 0).sum()
        # The centre of the loupe shows the surroundings of the point, in a grey of the shaded image of this report.
        frame = report.frames()[0]
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


def test_eight_thousand_matches_are_drawn_smoothly(open_report, tmp_path):
    pair = make_pair(num_points=8000, outlier_ratio=0.6, seed=1)
    found = estimate_all_rounds(pair)
    path = write_report(
        tmp_path / "r.html", found, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2
    )
    assert path.stat().st_size < 600_000
    with open_report(path) as report:
        milliseconds = report.page.evaluate("""() => {
            const start = performance.now();
            for (let i = 0; i < 5; i++) caransac.stage.drawMatches();
            document.getElementById("matches").getContext("2d").getImageData(0, 0, 1, 1); // wait for the pixels
            return (performance.now() - start) / 5;
        }""")
        assert milliseconds < 400  # without a graphics card, on a busy core


def test_only_the_matches_of_a_rival_can_be_shown(open_report, tmp_path, pair, pose, report_path):
    with open_report(report_path) as report:
        assert not report.page.locator("#rival").is_visible()
    inliers = np.zeros(len(pair.points1), bool)
    inliers[:7] = True
    told = replace(pose, rivals=(Rival(np.eye(3, 4), inliers, 7 / len(inliers)),))
    path = write_report(tmp_path / "rival.html", told, pair.points1, pair.points2)
    with open_report(path) as report:
        before = report.canvas("matches")
        report.page.locator("#rival").check()
        report.settle()
        assert "shows 7 of 240" in report.text("threshold-text")
        assert (report.canvas("matches") != before).any()
        assert "another motion explains" in report.page.locator("#facts").inner_text()


def test_the_loupe_shows_the_refined_point_and_the_given_one(open_report, tmp_path, rng):
    taken = photograph(rng, num_points=80, outlier_ratio=0.2)
    found = caransac.estimate(**taken.pose, images=taken.images)
    drawn = {"camera1": taken.camera, "camera2": taken.camera, "image1": taken.images[0], "image2": taken.images[1]}
    path = write_report(tmp_path / "r.html", found, taken.points1, taken.points2, **drawn)
    moves = np.linalg.norm(found.points2 - taken.points2, axis=1)
    lone = lonely(found.points2) > 12
    match = int(np.argmax(np.where(inside(found.points2, margin=60, size=(480, 360)) & lone, moves, 0)))
    still = int(np.flatnonzero((moves == 0) & lone & (lonely(taken.points1) > 12))[0])
    with open_report(path) as report:
        assert report.fact("Refined") == f"{found.num_refined} matches"
        before = f"{found.noise_before_px:.2f} px with the given points"
        assert report.fact("Noise") == f"{found.noise_px:.2f} px, {before}"
        report.page.mouse.click(*report.on_page(1, found.points2[match]))
        report.settle()
        assert f"refined by {moves[match]:.2f} px" in report.text("readout")
        frame = report.frames()[1]
        radius = min(max(0.17 * min(frame["width"], frame["height"]), 40), 84)
        middle = np.array([frame["x"] + frame["width"] - radius - 8, frame["y"] + frame["height"] - radius - 8])
        given = middle + (taken.points2 - found.points2)[match] * radius / 8
        circle = 4 * np.array([[np.cos(angle), np.sin(angle)] for angle in np.linspace(0, 2 * np.pi, 24)])
        brown = [163, 100, 11]
        on_ring, elsewhere = (
            np.abs(at(report.canvas("overlay"), place + circle)[:, :3] - brown).max(axis=1) < 40
            for place in (given, middle - 2 * (given - middle))
        )
        assert on_ring.mean() > 0.6 and elsewhere.mean() < 0.2
        report.press("Escape")
        report.page.mouse.click(*report.on_page(1, found.points2[still]))
        report.settle()
        assert f"Match {still + 1} " in report.text("readout") and "refined" not in report.text("readout")

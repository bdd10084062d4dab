"""Cameras on the command line: exact, uncertain and unknown ones, and their description in the output."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import caransac
from caransac import Camera
from caransac.api import geometry_answers
from caransac.camera_words import describe_focal
from caransac.cli import camera_arguments, main
from caransac.geometry import pose_error_deg
from caransac.io import images
from caransac.io.matches import Matches, read_matches, write_matches
from caransac.synthetic import make_pair
from caransac_lab.render import render_pair

FEW = ["--max-features", "2000"]
SIZE = ["--image-size", "1024x768"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two images without EXIF data, and the rendered pair."""
    pair, folder = render_pair(seed=6), tmp_path_factory.mktemp("images")
    named = (("a", pair.image1), ("b", pair.image2))
    return [str(images.write_image(folder / f"{name}.png", image)) for name, image in named], pair


@pytest.fixture(scope="module")
def made():
    return make_pair(num_points=400, outlier_ratio=0.4, seed=5)


@pytest.fixture
def bare(tmp_path, made):
    """Matches in a text file without cameras and sizes."""
    return str(write_matches(tmp_path / "m.txt", Matches(made.points1, made.points2, made.scores)))


def run_json(capsys, *arguments):
    code = main(["pose", *arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


def focal_of(answer, number=1):
    return answer[f"camera{number}"]["params"][0]


@pytest.mark.slow
def test_photographs_of_unknown_cameras_have_a_pose(photos, capsys, tmp_path):
    paths, pair = photos
    code, answer, err = run_json(capsys, *paths, *FEW, "--save", str(tmp_path / "m.npz"))
    assert (code, answer["type"]) == (0, "GeometryResult")
    assert pose_error_deg(answer["R"], answer["t"], pair.R, pair.t) < 0.5
    assert answer["command"]["camera_sources"] == ["estimated", "estimated"]
    for number in (1, 2):
        assert answer["command"][f"camera{number}"] is None
        assert focal_of(answer, number) == pytest.approx(pair.camera.fx, rel=0.02)
        assert 0 < answer[f"camera{number}"]["focal_deviation"] < 0.05
    assert "no EXIF focal length in a.png and b.png: it is estimated" in answer["command"]["note"]
    assert answer["command"]["note"] in err
    assert read_matches(tmp_path / "m.npz").image_size2 == (640, 480)
    _, alone, _ = run_json(capsys, *paths, *FEW, "--no-refine")
    _, again, _ = run_json(capsys, "--matches", str(tmp_path / "m.npz"))
    assert (again["R"], again["camera1"]) == (alone["R"], alone["camera1"])
    assert "no camera in the file of matches" in again["command"]["note"]


@pytest.mark.slow
def test_people_read_how_sure_a_focal_length_is(photos, capsys):
    paths, _ = photos
    assert main(["pose", *paths, *FEW]) == 0
    line = r"camera 2 +focal length 57\d\.\d px ± [\d.]+ %, estimated from the matches; give --focal or --camera if you"
    assert re.search(line, capsys.readouterr().out)
    assert main(["pose", *paths, *FEW, "--focal", "600±5%"]) == 0
    assert re.search(r"57\d\.\d px ± [\d.]+ %, refined; 600.0 px ± 5 % from --focal", capsys.readouterr().out)
    assert main(["pose", paths[0], paths[0], *FEW]) == 0  # a rotation does not determine the focal length
    out = capsys.readouterr().out
    assert "Homography of pixels" in out
    assert "hardly constrain it; give --focal or --camera" in out


@pytest.mark.parametrize("text", ["{:.1f}±5%", "{:.1f}+-5%", "{:.1f}±0.05"])
def test_an_uncertain_focal_length_is_refined(bare, made, capsys, text):
    focal = 1.04 * made.camera1.fx
    given = text.format(focal)
    _, exact, _ = run_json(capsys, "--matches", bare, *SIZE, "--focal", f"{focal:.1f}")
    _, uncertain, _ = run_json(capsys, "--matches", bare, *SIZE, "--focal", given)
    _, camera, _ = run_json(capsys, "--matches", bare, *SIZE, "--camera", given.replace("±", ",511.5,383.5±")
                            .replace("+-", ",511.5,383.5+-"))  # fmt: skip
    truth = made.R, made.t
    assert (focal_of(exact), exact["camera1"]["focal_deviation"]) == (pytest.approx(focal, abs=0.1), 0)
    assert focal_of(uncertain) == pytest.approx(made.camera1.fx, rel=0.02)
    assert 0 < uncertain["camera1"]["focal_deviation"] < 0.05
    assert pose_error_deg(uncertain["R"], uncertain["t"], *truth) < pose_error_deg(exact["R"], exact["t"], *truth)
    assert [each["command"]["camera_sources"][0] for each in (uncertain, camera)] == ["focal", "camera"]
    assert camera["R"] == uncertain["R"]


def test_without_cameras_and_sizes_there_is_a_fundamental_matrix_and_advice(bare, made, capsys):
    code, answer, err = run_json(capsys, "--matches", bare)
    assert (code, answer["type"], answer["camera1"]) == (0, "FundamentalResult", None)
    assert answer["command"]["camera_sources"] == ["unknown", "unknown"]
    assert "for a pose give --image-size WxH" in err
    assert answer["command"]["note"] in err
    assert main(["pose", "--matches", bare]) == 0
    assert re.search(r"Fundamental matrix[^~]*camera 1 +unknown\n", capsys.readouterr().out)
    _, answer, err = run_json(capsys, "--matches", bare, *SIZE)
    assert (answer["type"], answer["command"]["camera_sources"]) == ("GeometryResult", ["estimated"] * 2)
    assert pose_error_deg(answer["R"], answer["t"], made.R, made.t) < 1


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@pytest.mark.parametrize("known", ["sizes", "cameras"])
def test_a_focal_length_goes_with_the_sizes_in_the_file(tmp_path, made, capsys, suffix, known):
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
    cameras = {"camera1": Camera("SIMPLE_PINHOLE", (700, 500, 400), 1024, 768), "camera2": made.camera2}
    matches = Matches(made.points1, made.points2, made.scores, **(sizes if known == "sizes" else cameras))
    path = str(write_matches(tmp_path / f"m{suffix}", matches))
    code, answer, err = run_json(capsys, "--matches", path, "--focal", str(made.camera1.fx))
    assert (code, err, answer["command"]["camera_sources"]) == (0, "", ["focal", "focal"])
    assert answer["camera1"]["params"] == [made.camera1.fx, 511.5, 383.5]
    assert pose_error_deg(answer["R"], answer["t"], made.R, made.t) < 1


def test_a_known_camera_does_not_make_up_for_an_unknown_size(tmp_path, made, capsys):
    matches = Matches(made.points1, made.points2, made.scores, "ratio", made.camera1)
    _, answer, err = run_json(capsys, "--matches", str(write_matches(tmp_path / "m.npz", matches)))
    assert (answer["type"], answer["command"]["camera_sources"]) == ("FundamentalResult", ["file", "unknown"])
    assert "--image-size" in err
    matches = Matches(made.points1, made.points2, made.scores, "ratio", made.camera1, image_size2=(1024, 768))
    _, answer, _ = run_json(capsys, "--matches", str(write_matches(tmp_path / "m.h5", matches)))
    assert (answer["type"], answer["command"]["camera_sources"]) == ("GeometryResult", ["file", "estimated"])
    assert answer["camera1"]["params"] == list(made.camera1.params)
    matches = Matches(made.points1, made.points2, image_size1=(1024, 768))
    _, answer, _ = run_json(capsys, "--matches", str(write_matches(tmp_path / "n.npz", matches)))
    assert (answer["type"], answer["command"]["camera_sources"]) == ("FundamentalResult", ["unknown", "unknown"])


@pytest.mark.slow
def test_a_fundamental_matrix_can_be_requested(photos, capsys):
    paths, pair = photos
    code, answer, err = run_json(capsys, *paths, *FEW, "--fundamental")
    assert (code, answer["type"], answer["command"]["note"], err) == (0, "FundamentalResult", None, "")
    E = pair.camera.K.T @ np.array(answer["F"]) @ pair.camera.K
    cross = np.array([[0, -pair.t[2], pair.t[1]], [pair.t[2], 0, -pair.t[0]], [-pair.t[1], pair.t[0], 0]])
    truth = cross @ pair.R
    assert abs(np.sum(E * truth) / np.linalg.norm(E) / np.linalg.norm(truth)) > 0.9999
    assert focal_of(answer) == pytest.approx(pair.camera.fx, rel=0.02)
    _, known, _ = run_json(capsys, *paths, *FEW, "--fundamental", "--focal", "600")
    assert (known["F"], focal_of(known)) == (answer["F"], focal_of(answer))  # the camera is not used for F
    assert focal_of(known["command"]) == 600
    assert main(["pose", *paths, *FEW, "--fundamental"]) == 0
    assert "give --focal" not in capsys.readouterr().out


def test_users_may_state_whether_one_camera_took_both_images(tmp_path, made, capsys):
    centre = np.array(made.camera2.params[1:])
    zoomed = Matches(made.points1, (made.points2 - centre) * 0.8 + centre, made.scores)
    path = str(write_matches(tmp_path / "m.txt", zoomed))
    for options, ratio in (([], 0.8), (["--different-cameras"], 0.8), (["--same-camera"], 1.0)):
        _, answer, _ = run_json(capsys, "--matches", path, *SIZE, *options)
        if ratio == 1 and answer["kind"] != "pose_and_focals":
            continue  # no model with one camera explains these matches with enough confidence
        assert focal_of(answer, 2) / focal_of(answer, 1) == pytest.approx(ratio, rel=0.04)
    with pytest.raises(SystemExit):
        main(["pose", "--matches", path, "--same-camera", "--different-cameras"])
    assert "not allowed with argument" in capsys.readouterr().err


@pytest.mark.parametrize("known", [[], SIZE])
def test_failures_of_unknown_cameras_are_explained_and_shown(tmp_path, rng, capsys, known):
    path = write_matches(tmp_path / "m.txt", Matches(rng.random((4, 2)), rng.random((4, 2))))
    code, answer, err = run_json(capsys, "--matches", str(path), *known, "--html", str(tmp_path / "r.html"))
    assert (code, answer["camera1"]) == (1, None)
    least = "no pose: 4 matches, but it takes 5" if known else "no fundamental matrix: 4 matches, but it takes 7"
    assert least in err
    assert (tmp_path / "r.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("given", ["photographs", "sizes in the file", "sizes as options", "neither"])
def test_nobody_is_sent_away_for_an_unknown_camera(tmp_path, photos, made, bare, capsys, given):
    sized = Matches(made.points1, made.points2, made.scores, image_size1=(1024, 768), image_size2=(1024, 768))
    arguments, note = {
        "photographs": ([*photos[0], *FEW], "no EXIF focal length in a.png and b.png: it is estimated"),
        "sizes in the file": (
            ["--matches", str(write_matches(tmp_path / "s.npz", sized))],
            "no camera in the file of matches: the focal length is estimated",
        ),
        "sizes as options": (["--matches", bare, *SIZE], "the focal length is estimated; give --focal or --camera"),
        "neither": (["--matches", bare], "estimating the fundamental matrix; for a pose give --image-size WxH"),
    }[given]
    shown = "Fundamental matrix of pixels" if given == "neither" else "Pose of camera 2 from camera 1"
    for command in (["pose"], ["view", "--no-open", "--html", str(tmp_path / "r.html")]):
        assert main([*command, *arguments]) == 0
        captured = capsys.readouterr()
        assert note in captured.err
        assert captured.out.startswith(shown)
        assert ("estimated from the matches; give --focal" in captured.out) == (given != "neither")


@pytest.mark.slow
def test_reports_and_people_get_the_same_words_about_a_camera(tmp_path, photos, capsys):
    paths, _ = photos
    report = tmp_path / "r.html"
    for options, shown in (
        ([], r"57\d\.\d px ± [\d.]+ %, estimated from the matches"),
        (["--focal", "600±5%"], r"57\d\.\d px ± [\d.]+ %, refined; 600.0 px ± 5 % from --focal"),
        (["--focal", "576"], r"576.0 px, taken as exact, from --focal"),
        (["--fundamental"], r"5\d\d\.\d px ± [\d.]+ %, estimated from the matches"),
    ):
        assert main(["view", *paths, *FEW, *options, "--html", str(report), "--no-open"]) == 0
        told = re.findall(r"camera \d +focal length (.*?)(?:; give .*)?\n", capsys.readouterr().out)
        assert len(told) == 2 and all(re.fullmatch(shown, each) for each in told)
        assert all(json.dumps({"focal": each}) in report.read_text() for each in told)


def test_descriptions_of_cameras_contain_the_known_values():
    given = Camera("SIMPLE_PINHOLE", (600, 320, 240), focal_deviation=0.04)
    assert camera_arguments.describe_camera(None, None, "unknown") == "unknown"
    described = camera_arguments.describe_camera(given, given, "file")
    assert described == "focal length 600.0 px ± 4 %, from the file of matches"
    lens = Camera("SIMPLE_RADIAL", (590, 320, 240, 0.034), focal_deviation=0.02, distortion_deviation=0.01)
    assert describe_focal(lens, given) == "590.0 px ± 2 %, k1 0.034 ± 0.01, refined; 600.0 px ± 4 % as given"
    assert describe_focal(lens) == "590.0 px ± 2 %, k1 0.034 ± 0.01, estimated from the matches"


def test_a_geometry_does_not_claim_focal_lengths_that_are_assumed():
    pair = make_pair(400, outlier_ratio=0.2, noise_px=1.5, seed=2)
    found = caransac.estimate_relative_pose(
        pair.points1, pair.points2, image_size1=(1024, 768), image_size2=(1024, 768)
    )
    for deviation, words in (
        (0.03, "are found with the pose"),
        (0.2, "are assumed: the matches hardly constrain them"),
    ):
        camera = replace(found.camera1, focal_deviation=deviation)
        answer = geometry_answers.pose(
            "pose_and_focals", replace(found, camera1=camera, camera2=camera), geometry_answers.DEPTH_AND_FOCALS
        )
        assert answer.reason.endswith(words)
        assert ("assumed" in describe_focal(camera)) == ("assumed" in answer.reason)


def test_a_lens_may_be_known_or_not(tmp_path, made, capsys):
    pinhole = made.camera1
    bent = Camera("SIMPLE_RADIAL", (pinhole.fx, *pinhole.K[:2, 2], -0.15))
    points = (bent.rays_to_pixels(pinhole.pixels_to_rays(each)) for each in (made.points1, made.points2))
    path = str(write_matches(tmp_path / "bent.npz", Matches(*points, made.scores)))
    given = ["--matches", path, *SIZE, "--focal", f"{pinhole.fx:.3f}"]
    _, flat, _ = run_json(capsys, *given)
    found = {text: run_json(capsys, *given, "--distortion", text)[1] for text in ("-0.15", "-0.1±0.05", "unknown")}
    truth = made.R, made.t
    assert flat["kind"] == "fundamental" and flat["R"] is None  # without distortion, the pose would be wrong
    for text, answer in found.items():
        assert answer["camera1"]["model"] == "SIMPLE_RADIAL"
        assert answer["camera1"]["params"][3] == pytest.approx(-0.15, abs=0.03), text
        assert pose_error_deg(answer["R"], answer["t"], *truth) < 0.5
    assert "distortion_deviation" not in found["-0.15"]["camera1"]
    assert 0 < found["unknown"]["camera1"]["distortion_deviation"] < 0.05
    assert main(["pose", *given, "--distortion", "bent"]) == 2
    assert "--distortion must be k1, such as -0.05" in capsys.readouterr().err
    assert main(["pose", "--matches", path, "--distortion", "-0.1"]) == 2
    assert "--distortion needs the camera, or the size" in capsys.readouterr().err

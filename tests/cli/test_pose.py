"""``caransac pose``: from files to answers, and its messages on errors."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage
from PIL.ExifTags import IFD, Base

import caransac
from caransac.camera_priors import EXIF_FOCAL_DEVIATION
from caransac.cli import main
from caransac.geometry import pose_error_deg
from caransac.io import images
from caransac.io.matches import Matches, read_matches, write_matches
from caransac.synthetic import make_pair, make_plane
from caransac_lab.render import render_pair

FEW = ["--max-features", "2000"]


@pytest.fixture(scope="module")
def pair():
    return render_pair(seed=6)


@pytest.fixture(scope="module")
def files(tmp_path_factory, pair):
    folder = tmp_path_factory.mktemp("images")
    paths = [images.write_image(folder / f"{n}.png", image) for n, image in (("a", pair.image1), ("b", pair.image2))]
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def bare(saved):
    """The same matches in a text file without cameras and sizes."""
    path, made = saved
    return str(write_matches(Path(path).with_suffix(".txt"), Matches(made.points1, made.points2, made.scores)))


def camera_text(camera):
    return ",".join(str(value) for value in camera.params)


def run_json(capsys, *arguments):
    code = main(["pose", *arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


@pytest.mark.slow
@pytest.mark.parametrize("features", ["rootsift", "orb"])
def test_two_images_become_a_pose(files, pair, capsys, features):
    code, answer, err = run_json(capsys, *files, "--camera", camera_text(pair.camera), "--features", features, *FEW)
    assert (code, err) == (0, "")
    assert (answer["type"], answer["schema"], answer["kind"]) == ("GeometryResult", 1, "pose")
    assert pose_error_deg(answer["R"], answer["t"], pair.R, pair.t) < (0.2 if features == "rootsift" else 0.7)
    assert answer["confidence"] > 0.9
    assert (
        answer["camera1"]
        == answer["camera2"]
        == {
            "model": "SIMPLE_PINHOLE",
            "width": 640,
            "height": 480,
            "params": list(pair.camera.params),
            "focal_deviation": 0.0,
        }
    )
    assert len(answer["inliers"]) == answer["num_inliers"] > 200
    assert answer["num_refined"] > 0.5 * answer["num_inliers"]
    assert answer["noise_px"] < answer["noise_before_px"]
    assert len(answer["probabilities"]) == answer["num_matches"]
    command = answer["command"]
    assert set(command["seconds"]) == {"read", "match", "estimate"}
    assert (command["camera_sources"], command["camera1"]) == (["camera", "camera"], answer["camera1"])


@pytest.mark.slow
def test_people_get_a_pose_to_read(files, pair, capsys):
    assert main(["pose", *files, "--focal", str(pair.camera.fx), *FEW]) == 0
    out = capsys.readouterr().out
    rows = np.array([line.strip(" []").split() for line in out.splitlines() if line.strip().startswith("[")], float)
    assert pose_error_deg(rows[:, :3], rows[:, 3], pair.R, pair.t) < 0.2
    for word in ("rotation", "translation", "inliers", "confidence", "time"):
        assert word in out
    before, after = re.search(r"refined  +\d+ matches in the images; noise (.*) px before, (.*) px after", out).groups()
    assert float(after) < float(before) < 1
    assert "camera 2      focal length 576.0 px, taken as exact, from --focal" in out


@pytest.mark.slow
def test_exif_gives_the_focal_length(tmp_path, pair, capsys):
    paths = []
    for name, image in (("a", pair.image1), ("b", pair.image2)):
        exif = PillowImage.Exif()
        exif.get_ifd(IFD.Exif).update({Base.FocalLength: 5.76, Base.FocalPlaneXResolution: 100.0})
        exif.get_ifd(IFD.Exif)[Base.FocalPlaneResolutionUnit] = 4
        paths.append(str(tmp_path / f"{name}.jpg"))
        PillowImage.fromarray(image).save(paths[-1], quality=95, exif=exif)
    code, answer, err = run_json(capsys, *paths, *FEW)
    assert (code, err, answer["command"]["camera_sources"]) == (0, "", ["exif", "exif"])
    assert answer["command"]["camera1"]["focal_deviation"] == EXIF_FOCAL_DEVIATION
    assert answer["camera1"]["params"][0] == pytest.approx(576, rel=0.01)
    assert 0 < answer["camera1"]["focal_deviation"] < EXIF_FOCAL_DEVIATION
    assert pose_error_deg(answer["R"], answer["t"], pair.R, pair.t) < 0.3
    assert main(["pose", *paths, *FEW]) == 0
    assert re.search(r"camera 1 .* ± .* %, refined; 576.0 px ± 4 % from EXIF", capsys.readouterr().out)
    PillowImage.fromarray(pair.image2).save(paths[1])  # without EXIF data
    code, answer, err = run_json(capsys, *paths, *FEW)
    assert answer["command"]["camera_sources"] == ["exif", "estimated"]
    assert "no EXIF focal length in b.jpg:" in err
    assert pose_error_deg(answer["R"], answer["t"], pair.R, pair.t) < 1


@pytest.mark.slow
def test_saved_matches_give_the_same_answer(tmp_path, files, pair, capsys):
    path = tmp_path / "m.npz"
    arguments = [*files, "--camera", camera_text(pair.camera), *FEW]
    code, answer, err = run_json(capsys, *arguments, "--no-refine", "--save", str(path))
    assert (code, err, answer["num_refined"]) == (0, f"Matches: {path}\n", None)
    assert len(read_matches(path).points1) == answer["num_matches"]
    _, again, _ = run_json(capsys, "--matches", str(path))
    assert again["command"]["camera_sources"] == ["file", "file"]
    assert (again["R"], again["t"], again["inliers"]) == (answer["R"], answer["t"], answer["inliers"])
    given = read_matches(path).points2
    _, refined, _ = run_json(capsys, *arguments, "--save", str(path))
    np.testing.assert_array_equal(read_matches(path).points2, given)
    _, again, _ = run_json(capsys, *files, "--matches", str(path))
    assert (again["R"], again["num_refined"]) == (refined["R"], refined["num_refined"]) != (answer["R"], None)


def test_the_json_contains_the_dict_of_the_result(saved, capsys):
    matches = read_matches(saved[0])
    _, answer, _ = run_json(capsys, "--matches", saved[0])
    command = answer.pop("command")
    expected = caransac.estimate(**matches.arguments()).to_dict()
    assert list(answer) == list(expected)
    different = {name for name in answer if answer[name] != expected[name]}
    assert different <= {"elapsed_s"}
    assert set(command) == {"camera_sources", "camera1", "camera2", "note", "seconds", "version"}
    _, matrix, _ = run_json(capsys, "--matches", saved[0], "--fundamental")
    sizes = {f"image_size{n}": (c.width, c.height) for n, c in ((1, matches.camera1), (2, matches.camera2))}
    found = caransac.estimate_fundamental(
        matches.points1, matches.points2, scores=matches.scores, score_kind=matches.score_kind, **sizes
    ).to_dict()
    assert {name: matrix[name] for name in found if name != "elapsed_s"} == {
        name: value for name, value in found.items() if name != "elapsed_s"
    }


def test_matches_of_every_kind_are_taken(tmp_path, saved, capsys):
    path, made = saved
    matches = read_matches(path)
    camera = f"SIMPLE_PINHOLE:1024x768:{camera_text(made.camera1)}"
    for suffix in (".txt", ".h5"):
        other = write_matches(tmp_path / f"m{suffix}", matches)
        code, answer, _ = run_json(capsys, "--matches", str(other), "--camera", camera, "--camera", camera)
        assert code == 0
        assert pose_error_deg(answer["R"], answer["t"], made.R, made.t) < 1


def test_score_kind_key_and_options_reach_the_estimator(tmp_path, saved, capsys):
    path, made = saved
    _, ratio, _ = run_json(capsys, "--matches", path)
    _, confidence, _ = run_json(capsys, "--matches", path, "--score-kind", "confidence")
    assert ratio["probabilities"] != confidence["probabilities"]
    code, classical, _ = run_json(capsys, "--matches", path, "--method", "lm-lo-u", "--seed", "3", "--rounds", "1")
    assert (code, classical["probabilities"], classical["confidence"]) == (0, None, None)
    assert classical["num_hypotheses"] <= 256
    _, loose, _ = run_json(capsys, "--matches", path, "--max-error", "3")
    assert loose["num_inliers"] > ratio["num_inliers"]
    assert main(["pose", "--matches", path, "--method", "lm-lo"]) == 0  # this method has no confidence to print
    assert "confidence" not in capsys.readouterr().out
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a-b"], file["a-c"] = np.c_[made.points1, made.points2], np.zeros((0, 4))
    camera = ["--camera", camera_text(made.camera1)]
    code, answer, _ = run_json(capsys, "--matches", str(tmp_path / "m.h5"), "--key", "a-b", *camera)
    assert (code, answer["num_matches"]) == (0, 400)


@pytest.mark.parametrize(
    ("rows", "camera", "message"),
    [
        (4, True, "no pose: 4 matches, but it takes 5 or more"),
        (6, False, "no fundamental matrix: 6 matches, but it takes 7 or more"),
        (0, False, "0 matches"),
    ],
)
def test_failure_is_exit_code_one_with_a_reason(tmp_path, rng, capsys, rows, camera, message):
    path = write_matches(tmp_path / "m.txt", Matches(rng.random((rows, 2)), rng.random((rows, 2))))
    arguments = ["--matches", str(path), *(["--camera", "500,320,240"] if camera else [])]
    assert main(["pose", *arguments]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    code, answer, _ = run_json(capsys, *arguments)
    assert (code, answer["success"], answer["stop_reason"]) == (1, False, "too_few_points")
    assert answer["R" if camera else "F"] is None


def test_repeated_points_are_degenerate(tmp_path, capsys):
    path = write_matches(tmp_path / "m.txt", Matches(np.ones((20, 2)), np.ones((20, 2))))
    assert main(["pose", "--matches", str(path), "--camera", "500,320,240"]) == 1
    assert "no pose: the 20 matches are duplicates" in capsys.readouterr().err


def test_a_lens_that_leaves_no_rays_is_pointed_out(saved, capsys):
    assert main(["pose", "--matches", saved[0], "--camera", "SIMPLE_RADIAL:500,320,240,-1e8"]) == 1
    assert "the lens distortion leaves fewer than 5 of the" in capsys.readouterr().err


@pytest.mark.slow
def test_a_camera_that_stood_still_is_pointed_out(files, pair, capsys):
    camera = ["--focal", str(pair.camera.fx), *FEW]
    assert main(["pose", files[0], files[0], *camera]) == 0
    assert "rotation: no motion" in capsys.readouterr().out
    _, answer, _ = run_json(capsys, files[0], files[0], *camera)
    assert (answer["kind"], answer["t"], answer["parallax_px"]) == ("rotation", None, None)
    assert np.allclose(answer["R"], np.eye(3), atol=1e-6)
    _, answer, _ = run_json(capsys, *files, *camera)
    assert (answer["kind"], answer["alternatives"]) == ("pose", [])
    assert answer["parallax_px"] > 10


def test_an_answer_is_not_lost_when_a_file_cannot_be_written(saved, tmp_path, capsys):
    assert main(["pose", "--matches", saved[0], "--html", str(tmp_path)]) == 2  # a folder
    captured = capsys.readouterr()
    assert "confidence" in captured.out
    assert "is a folder: give the name of a file" in captured.err


def test_a_mirrored_image_is_reported(tmp_path, capsys):
    pair = make_pair(300, 0.3, seed=3)
    path = tmp_path / "mirrored.npz"
    write_matches(
        path, Matches(pair.points1, [1023, 0] + pair.points2 * [-1, 1], None, "ratio", pair.camera1, pair.camera2)
    )
    assert main(["pose", "--matches", str(path)]) == 1
    assert "the matches are mirrored, which no camera sees: is one image flipped?" in capsys.readouterr().err


def test_blank_images_have_too_few_matches(tmp_path, capsys):
    path = str(images.write_image(tmp_path / "blank.png", np.zeros((60, 80, 3), np.uint8)))
    assert main(["pose", path, path, "--focal", "70"]) == 1
    assert "0 matches" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give two images, or --matches FILE"),
        (["{a}"], "one image is not enough"),
        (["{a}", "none.png"], "no such image: none.png"),
        (["{a}", "."], "is a folder"),
        (["{a}", __file__], "is not an image"),
        (["--matches", "none.npz"], "no such file of matches: none.npz"),
        (["--matches", "m.csv"], r"end in \.npz, \.txt, \.h5"),
        (["--matches", "{t}", "--focal", "500"], "--focal needs the size of the images: .* --image-size"),
        (["{a}", "{b}", "--focal", "long"], "--focal must be a number of pixels, 1200 or 1200±5%, not 'long'"),
        (["{a}", "{b}", "--focal", "500±much"], "--focal must be a number of pixels"),
        (["{a}", "{b}", "--focal", "500±500%"], "--focal 500±500%: the deviation must be from 0 % to 100 %"),
        (["{a}", "{b}", "--camera", "1,2,3±-5%"], r"focal_deviation must be 0 \(exact\) or from 1e-09 to 1"),
        (["{a}", "{b}", "--image-size", "640x480"], "--image-size is only for --matches FILE without images"),
        (["--matches", "{t}", "--image-size", "640"], "--image-size must be WIDTHxHEIGHT .* not '640'"),
        (["--matches", "{t}", "--image-size", "0x480"], "--image-size must be WIDTHxHEIGHT"),
        (["--matches", "{t}", "--image-size", "9999999x9"], "--image-size must be WIDTHxHEIGHT"),
        (["--matches", "{t}", *["--image-size", "9x9"] * 3], "--image-size was given 3 times"),
        (["--matches", "{t}", "--image-size", "640x480"], r"--image-size 640x480 is too small .* reach \(\d+, \d+\)"),
        (
            ["--matches", "{m}", "--image-size", "2000x1500"],
            "for 1024x768, but --image-size is 2000x1500",
        ),
        (["{a}", "{b}", "--focal", "0"], "--focal must be positive"),
        (["{a}", "{b}", "--focal", "nan"], "--focal must be positive"),
        (["{a}", "{b}", *["--focal", "9"] * 3], "given 3 times"),
        (["{a}", "{b}", "--camera", "1,2"], "camera '1,2' has 2 numbers"),
        (["{a}", "{b}", "--camera", "PINHOLE:32x24:9,9,9,9"], "the camera is for 32x24, but .*a.png is 640x480"),
        (["{a}", "{b}", "--score-kind", "ratio"], "--score-kind needs --matches"),
        (["{a}", "{b}", "--key", "k"], "--key needs --matches"),
        (["{a}", "{b}", "--save", "m.csv"], "--save m.csv: the name must end in"),
        (["{a}", "{b}", "--max-features", "0"], "max_features must be a whole number from 1 to 1000000"),
        (["{a}", "{b}", "--max-features", "99999999999"], "max_features must be a whole number from 1 to 1000000"),
        (["{a}", "{b}", "--max-size", "9"], "max_size must be 0, for the full size, or at least 64"),
        (["--matches", "{m}", "--min-confidence", "50"], "--min-confidence must be from 0 to 1, not 50"),
        (["--matches", "{m}", "--min-confidence", "nan"], "--min-confidence must be from 0 to 1"),
        (
            ["--matches", "{m}", "--min-confidence", "0.5", "--method", "lm-lo"],
            "--min-confidence needs --method ca-ransac: lm-lo has no confidence",
        ),
        (["{a}", "{b}", "--focal", "1e-300"], "focal length of 1e-06 or more"),
        (["{a}", "{b}", "--focal", "1e300"], "no number beyond"),
        (["{a}", "{b}", "--html", "{b}"], "--html .*b.png is an input; choose another place"),
        (["--matches", "{m}", "--save", "{m}"], "--save .*m.npz is an input"),
        (["{m}", "{m}"], "is not an image"),
        (["--matches", "{m}", "--rounds", "0"], "rounds must be"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_errors_name_a_remedy(files, saved, bare, capsys, arguments, message):
    names = {"{a}": files[0], "{b}": files[1], "{m}": saved[0], "{t}": bare}
    assert main(["pose", *(names.get(word, word) for word in arguments)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("caransac: ")
    assert re.search(message, err)


def test_a_low_confidence_is_exit_code_one_if_asked(tmp_path, saved, rng, capsys):
    assert main(["pose", "--matches", saved[0], "--min-confidence", "0.5"]) == 0
    assert capsys.readouterr().err == ""
    unrelated = Matches(rng.uniform(0, 640, (300, 2)), rng.uniform(0, 640, (300, 2)))
    path = str(write_matches(tmp_path / "m.txt", unrelated))
    arguments = ["--matches", path, "--camera", "500,320,320"]
    code, answer, err = run_json(capsys, *arguments)
    assert (code, answer["success"], answer["kind"], answer["stop_reason"]) == (1, False, "none", "unsure")
    assert "no geometry explains the 300 matches with confidence" in err
    report = tmp_path / "r.html"
    assert main(["pose", "--matches", saved[0], "--min-confidence", "1", "--html", str(report)]) == 1
    captured = capsys.readouterr()
    assert re.search(r"^caransac: the confidence is [\d.]+, below --min-confidence 1$", captured.err, re.MULTILINE)
    assert "Pose of camera 2" in captured.out  # the answer is printed in spite of the error
    assert report.exists()


@pytest.mark.parametrize("suffix", [".npz", ".txt", ".h5"])
def test_matches_come_on_standard_input(tmp_path, saved, capsys, monkeypatch, suffix):
    path = write_matches(tmp_path / f"m{suffix}", read_matches(saved[0]))
    camera = ["--camera", camera_text(saved[1].camera1)]
    _, expected, _ = run_json(capsys, "--matches", str(path), *camera)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    code, answer, _ = run_json(capsys, "--matches", "-", *camera)
    assert (code, answer["R"], answer["inliers"]) == (0, expected["R"], expected["inliers"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<html>")))
    assert main(["pose", "--matches", "-"]) == 2
    assert "caransac: standard input: line 1" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["pose", "--matches", "-"]) == 2
    assert "standard input, which is closed" in capsys.readouterr().err


def test_quiet_prints_only_errors(tmp_path, bare, files, capsys):
    outputs = ["--save", str(tmp_path / "m.npz"), "--html", str(tmp_path / "r.html")]
    assert main(["pose", "-q", "--matches", bare, *outputs]) == 0  # the cameras are unknown
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert (tmp_path / "m.npz").exists()
    assert (tmp_path / "r.html").exists()
    code, answer, err = run_json(capsys, "--quiet", "--matches", bare)  # JSON is printed in spite of --quiet
    assert (code, err) == (0, "")
    assert "--image-size" in answer["command"]["note"]
    assert main(["pose", "-q", files[0]]) == 2
    assert "one image is not enough" in capsys.readouterr().err


@pytest.mark.slow
def test_large_images_are_matched_at_a_size_and_answered_in_their_pixels(tmp_path, capsys):
    pair = render_pair(seed=6, width=960, height=720)
    paths = [str(images.write_image(tmp_path / f"{n}.png", i)) for n, i in (("a", pair.image1), ("b", pair.image2))]
    camera = ["--camera", camera_text(pair.camera), *FEW]
    saved = tmp_path / "m.npz"
    answers = {}
    for size in ("480", "640", None):
        option = [] if size is None else ["--max-size", size]
        code, answers[size], _ = run_json(capsys, *paths, *camera, *option, "--save", str(saved))
        assert code == 0
        assert pose_error_deg(answers[size]["R"], answers[size]["t"], pair.R, pair.t) < 0.2
        assert (answers[size]["camera1"]["width"], answers[size]["num_inliers"] > 200) == (960, True)
        assert read_matches(saved).points1.max() > 800
    assert len({answer["num_matches"] for answer in answers.values()}) == 3


def test_a_missing_extra_is_named(files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert main(["pose", *files]) == 2
    assert "pip install 'caransac[images]'" in capsys.readouterr().err


@pytest.mark.slow
def test_reports_are_written(tmp_path, files, saved, capsys):
    report = tmp_path / "new" / "report.html"
    assert main(["pose", *files, "--focal", "576", *FEW, "--html", str(report)]) == 0
    assert f"Report: {report}" in capsys.readouterr().out
    text = report.read_text()
    assert "a.png" in text
    assert "data:image/jpeg;base64" in text
    assert main(["pose", "--matches", saved[0], "--json", "--html", str(report)]) == 0  # replaces the old file
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert str(report) in captured.err
    assert "data:image/jpeg;base64" not in report.read_text()


@pytest.mark.parametrize("command", ["pose", "view"])
def test_help_has_examples_and_fits_a_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert f"caransac {command} IMAGE1 IMAGE2" in out
    assert "examples:" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_an_unreliable_fundamental_matrix_is_not_returned(tmp_path, rng, saved, capsys):
    """For random matches, there is no answer. Answers need a confidence of 0.5, with and without --fundamental."""
    size = ("--image-size", "640x480")
    path = write_matches(tmp_path / "m.txt", Matches(*(rng.uniform(0, 480, (2, 200, 2)))))
    for arguments in (("--fundamental",), ("--fundamental", *size), size, ()):
        code, answer, err = run_json(capsys, "--matches", str(path), *arguments)
        assert (code, answer["success"], answer["F"], answer["num_inliers"]) == (1, False, None, 0)
        assert answer["stop_reason"] in ("unsure", "no_consensus")
        assert "do the images show the same scene" in err
    assert main(["pose", "--matches", saved[0], "--fundamental"]) == 0
    assert "Fundamental matrix" in capsys.readouterr().out
    arguments = ["--matches", str(path), "--fundamental", "--method", "lm-lo"]
    assert main(["pose", *arguments]) == 0  # a method without a confidence always gives an answer


def test_options_are_not_abbreviated(capsys):
    with pytest.raises(SystemExit):
        main(["pose", "a.jpg", "b.jpg", "--foca", "1200"])
    assert "unrecognized arguments: --foca 1200; did you mean --focal?" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
def test_help_offers_the_features_that_are_installed(capsys, monkeypatch, there):
    monkeypatch.setattr(images, "_akaze", lambda _: object if there else None)
    with pytest.raises(SystemExit):
        main(["pose", "--help"])
    assert ("{rootsift,orb,akaze}" if there else "{rootsift,orb}\n") in capsys.readouterr().out


def test_a_homography_has_one_scale_for_people_and_programs(tmp_path, capsys):
    plane = make_plane(300, outlier_ratio=0.2)
    path = str(write_matches(tmp_path / "m.npz", Matches(plane.points1, plane.points2)))
    sizes = ["--image-size", "1600x1200"]  # some points leave image 2
    assert main(["pose", "--matches", path, *sizes]) == 0
    rows = re.findall(r"^  \[(.*)\]$", capsys.readouterr().out, re.MULTILINE)[:3]
    printed = np.array([row.split() for row in rows], float)
    assert main(["pose", "--matches", path, *sizes, "--json"]) == 0
    H = np.array(json.loads(capsys.readouterr().out)["H"])
    np.testing.assert_allclose(printed, H, rtol=1e-6)
    assert np.linalg.norm(H) == pytest.approx(1)

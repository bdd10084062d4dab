"""Verification of hloc's files: pixel conventions, names with slashes, half precision."""

import re
import shutil

import h5py
import numpy as np
import pytest
from hloc_files import PAIRS, arguments, group, names, put

from caransac.camera import Camera
from caransac.cli import main
from caransac.geometry import pose_error_deg, sampson_sq
from caransac.verification import HlocFiles
from caransac.verification.hloc import read_cameras


def test_poses_and_inliers_are_right(files, capsys):
    report = files / "report.csv"
    cameras = str(files / "cameras.txt")
    assert main(arguments(files, "--cameras", cameras, "--report", str(report))) == 0
    assert "5 calibrated" in capsys.readouterr().out
    assert len(report.read_text().splitlines()) == 6 and not (files / "out/verified.h5.partial").exists()
    with (
        h5py.File(files / "out/verified.h5") as out,
        h5py.File(files / "matches.h5") as before,
        h5py.File(files / "feats.h5") as features,
    ):
        for index, pair in enumerate(PAIRS):
            found, given = out[group(index)], before[group(index)]
            assert pose_error_deg(found["R"], found["t"], pair.R, pair.t) < 1
            kept, given0 = found["matches0"][()], given["matches0"][()]
            assert found["matches0"].dtype == np.int16 and found["matching_scores0"].dtype == np.float16
            matched = kept >= 0
            assert 0 < matched.sum() < (given0 >= 0).sum()
            np.testing.assert_array_equal(kept[matched], given0[matched])
            np.testing.assert_array_equal(found["matching_scores0"][matched], given["matching_scores0"][matched])
            assert not found["matching_scores0"][~matched].any()
            keypoints1, keypoints2 = (features[name]["keypoints"][()] for name in names(index))
            distances = np.sqrt(sampson_sq(found["F"], keypoints1[matched], keypoints2[kept[matched]]))
            assert distances.max() < 2.02  # F refers to the pixels of the file
            assert found.attrs["config"] == "calibrated" and 0 < found.attrs["confidence"] <= 1


def test_cameras_move_to_the_pixels_of_hloc(files):
    cameras = read_cameras(files / "cameras.txt")
    assert cameras[names(3)[1]] == Camera("SIMPLE_PINHOLE", PAIRS[0].camera1.params, 1024, 768)


def test_without_cameras_there_is_a_fundamental_matrix(files):
    assert main(arguments(files)) == 0
    with h5py.File(files / "out/verified.h5") as out:
        assert {out[group(i)].attrs["config"] for i in range(5)} == {"uncalibrated"}
        assert all("F" in out[group(i)] and "R" not in out[group(i)] for i in range(5))


def test_half_precision_and_reversed_pairs(files):
    with h5py.File(files / "feats.h5", "a") as features:
        for index in range(5):
            for name in names(index):
                keypoints = features[name]["keypoints"][()]
                del features[name]["keypoints"]
                features[f"{name}/keypoints"] = keypoints.astype(np.float16)
    (files / "pairs.txt").write_text("".join(f"{names(i)[1]} {names(i)[0]}\n{' '.join(names(i))}\n" for i in range(5)))
    assert main(arguments(files, "--cameras", str(files / "cameras.txt"))) == 0
    with h5py.File(files / "out/verified.h5") as out:
        for index, pair in enumerate(PAIRS):
            found = out[group(index)]
            assert pose_error_deg(found["R"], found["t"], pair.R, pair.t) < 2


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "feats.h5").unlink(), r"no such file: .*feats\.h5"),
        (lambda f: (f / "pairs.txt").unlink(), "--pairs: no such file"),
        (lambda f: (f / "pairs.txt").write_text(""), "no pairs: two image names per line"),
        (lambda f: (f / "pairs.txt").write_text("a b c\n"), "line 1 has 3 words"),
        (lambda f: (f / "pairs.txt").write_text("a b\n"), "no matches of a and b: match this pair first"),
        (lambda f: (f / "matches.h5").write_text("hello"), r"matches\.h5 is not an HDF5 file"),
        (lambda f: (f / "cameras.txt").write_text("a FISHBOWL 1 1 1\n"), "line 1 .*SIMPLE_PINHOLE"),
        (lambda f: (f / "cameras.txt").write_text("a\n"), "line 1"),
        (lambda f: remove_keypoints(f, slice(0, 5)), "features were extracted again, so match again"),
        (lambda f: remove_keypoints(f, None), "no keypoints of day/2/left.jpg: extract"),
        (lambda f: put(f, "feats", names(2)[0], "keypoints", "text"), "corrupt keypoints of day/2/left.jpg: extract"),
        (lambda f: put(f, "feats", names(2)[0], "keypoints", np.full((9, 2), 1e30)), "corrupt keypoints of day/2"),
        (lambda f: put(f, "feats", names(2)[0], "keypoints", np.full((9, 2), np.nan)), r"feats\.h5: .* of day/2.*NaN"),
        (lambda f: put(f, "matches", group(2), "matches0", None), "corrupt matches of .*: match this pair again"),
        (lambda f: put(f, "matches", group(2), "matches0", "text"), "corrupt matches of"),
        (lambda f: put(f, "matches", group(2), "matches0", np.zeros((9, 2), int)), r"must be \(n,\) indices"),
        (lambda f: put(f, "matches", group(2), "matches0", np.full(9, 2**40)), r"must be \(n,\) indices"),
        (lambda f: put(f, "matches", group(2), "matches0", np.arange(9)), r"scores0 must have shape \(9,\)"),
        (lambda f: put(f, "matches", group(2), "matching_scores0", "text"), "corrupt matches of"),
        (lambda f: (f / "pairs.txt").write_bytes(b"\xff\xfe"), "pairs.txt is not a text file"),
        (lambda f: (f / "cameras.txt").write_bytes(b"\xff\xfe"), "cameras.txt is not a text file"),
    ],
)
def test_errors_name_a_remedy(files, capsys, spoil, message):
    spoil(files)
    assert main(arguments(files, "--strict", "--cameras", str(files / "cameras.txt"))) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (files / "out/verified.h5").exists()


def remove_keypoints(files, keep):
    with h5py.File(files / "feats.h5", "a") as features:
        image = features[names(2)[0]]
        keypoints = image["keypoints"][()]
        del image["keypoints"]
        if keep is not None:
            image["keypoints"] = keypoints[keep]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_by_name(files, capsys, value):
    with h5py.File(files / "matches.h5") as matches:
        matched = matches[group(2)]["matches0"][()] >= 0
    put(files, "matches", group(2), "matching_scores0", np.where(matched, 0.5, value))
    assert main(arguments(files)) == 0  # scores of unmatched keypoints are not read
    put(files, "matches", group(2), "matching_scores0", np.where(matched, value, 0.5))
    assert main(arguments(files, "--overwrite", "--strict")) == 2
    message = r"matches\.h5: corrupt matches of day/2/left.jpg and night/2.jpg: .*matching_scores0 must not contain NaN"
    assert re.search(message, capsys.readouterr().err)


def test_impossible_outputs_are_refused_at_once(files, capsys, monkeypatch):
    made = files / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    monkeypatch.setattr("caransac.cli.verify.verify", None)  # must not be called
    inputs = ["verify", "--features", files / "feats.h5", "--matches", files / "matches.h5", "--pairs"]
    inputs = [*map(str, inputs), str(files / "pairs.txt"), "--out"]
    (files / "folder").mkdir()
    shutil.copy(files / "matches.h5", files / "others.h5")
    for out, message in (
        ("folder", "is a folder: give the name of a file"),
        ("pairs.txt/out.h5", "it is a file"),
        ("pairs.txt", "pairs.txt is an input; choose another place"),
        ("others.h5", "which caransac verify did not write: choose another path, or replace it with --overwrite"),
    ):
        assert main([*inputs, str(files / out)]) == 2
        assert message in capsys.readouterr().err
    assert list(made.iterdir()) == []
    h5py.File(files / "feats.h5", "a").close()  # raises if the file is still open


def test_options_that_do_not_fit(files, capsys):
    assert main(arguments(files, "--ratio-from-descriptors")) == 2
    assert "reads a COLMAP database" in capsys.readouterr().err
    (files / "cameras.txt").write_text("")
    assert main(arguments(files, "--cameras", str(files / "cameras.txt"), "--calibrated", "always")) == 2
    assert "has no line for day/0/left.jpg" in capsys.readouterr().err
    assert main([*arguments(files)[:-1], str(files / "matches.h5")]) == 2
    assert "is an input; choose another place" in capsys.readouterr().err


def test_a_run_that_cannot_resume_closes_all_files(files, monkeypatch):
    (files / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(files / "temporary"))
    (files / "verified.h5").write_text("mine")
    with pytest.raises(OSError, match=r"verified\.h5 is not an HDF5 file"):
        HlocFiles(files / "feats.h5", files / "matches.h5", files / "pairs.txt", files / "verified.h5")
    assert list((files / "temporary").iterdir()) == []
    assert (files / "verified.h5").read_text() == "mine"
    for name in ("feats.h5", "matches.h5"):
        h5py.File(files / name, "a").close()  # raises if the file is still open


@pytest.mark.parametrize("size", [(0, 768), (-1024, 768), (np.nan, 768), (np.inf, 768), (1e9, 768), (1024,)], ids=repr)
def test_a_size_that_no_image_has_is_not_used(files, size):
    with h5py.File(files / "feats.h5", "a") as features:
        for name in names(0):
            features[f"{name}/image_size"] = np.array(size)
    source = HlocFiles(*(files / name for name in ("feats.h5", "matches.h5", "pairs.txt")), files / "sizes.h5")
    assert source.read(0).image_sizes is None
    source.close()


def test_sizes_of_unknown_cameras_are_used(files):
    with h5py.File(files / "feats.h5", "a") as features:
        for name in names(0):
            features[f"{name}/image_size"] = np.array([1024, 768])
    source = HlocFiles(*(files / name for name in ("feats.h5", "matches.h5", "pairs.txt")), files / "sizes.h5")
    assert source.read(0).image_sizes == ((1024, 768), (1024, 768))
    assert source.read(1).image_sizes is None
    assert [focal.source for focal in source.focals(0)] == ["unknown", "unknown"]
    source.close()
    assert main(arguments(files, "--write-focals")) == 2
    assert main(arguments(files)) == 0
    with h5py.File(files / "out/verified.h5") as out:
        assert out[group(0)].attrs["config"] == "uncalibrated"


def test_given_cameras_may_be_uncertain(files):
    assert main(arguments(files, "--cameras", str(files / "cameras.txt"), "--focal-deviation", "3%")) == 0
    with h5py.File(files / "out/verified.h5") as out:
        for index, pair in enumerate(PAIRS):
            assert pose_error_deg(out[group(index)]["R"], out[group(index)]["t"], pair.R, pair.t) < 2

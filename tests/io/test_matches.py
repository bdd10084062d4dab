"""Correspondences in files."""

from io import BytesIO

import numpy as np
import pytest
from photographs import photograph

import caransac
from caransac.camera import Camera
from caransac.geometry import pose_error_deg
from caransac.io.matches import Matches, parse_matches, read_matches, write_matches
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair, read_npz, write_npz

CAMERAS = (Camera("OPENCV", (500, 510, 320, 240, 0.1, 0.01, 0.001, 0), 640, 480), Camera("PINHOLE", (9, 8, 7, 6)))


def make(rng, **changes):
    fields = {"points1": rng.uniform(0, 640, (7, 2)), "points2": rng.uniform(0, 640, (7, 2)), "scores": rng.random(7)}
    return Matches(**(fields | changes))


def assert_equal(a, b, rtol=0.0):
    np.testing.assert_allclose(a.points1, b.points1, rtol=rtol)
    np.testing.assert_allclose(a.points2, b.points2, rtol=rtol)
    assert (a.scores is None) == (b.scores is None)
    if a.scores is not None:
        np.testing.assert_allclose(a.scores, b.scores, rtol=rtol)
        assert a.score_kind == b.score_kind


@pytest.mark.parametrize("suffix", ["npz", "txt", "h5"])
@pytest.mark.parametrize("changes", [{}, {"score_kind": "confidence"}, {"scores": None}], ids=str)
def test_files_are_read_as_written(tmp_path, rng, suffix, changes):
    matches = make(rng, **changes, camera1=CAMERAS[0], camera2=CAMERAS[1])
    path = write_matches(tmp_path / "new" / f"m.{suffix}", matches)
    read = read_matches(path)
    assert_equal(read, matches, rtol=1e-8 if suffix == "txt" else 0)
    assert (read.camera1, read.camera2) == ((None, None) if suffix == "txt" else CAMERAS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", ["npz", "txt", "h5"])
def test_the_content_of_a_file_is_enough(tmp_path, rng, suffix):
    path = write_matches(tmp_path / f"m.{suffix}", make(rng, score_kind="confidence", camera1=CAMERAS[0]))
    parsed, read = parse_matches(path.read_bytes()), read_matches(path)
    assert_equal(parsed, read)
    assert parsed.camera1 == read.camera1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1 2 3\n", "standard input: line 1 has 3 numbers"),
        (b"PK no archive", "standard input is not an npz archive"),
        (b"\x89HDF no more", "standard input is not an HDF5 file"),
        (b"\xff\xfe", "standard input is not a text file in UTF-8"),
    ],
)
def test_content_without_matches_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        parse_matches(data)


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_uncertain_cameras_and_the_sizes_of_unknown_ones_are_kept(tmp_path, rng, suffix):
    uncertain = Camera("SIMPLE_RADIAL", (800, 512, 384, -0.1), 1024, 768, 0.04, distortion_deviation=0.02)
    path = write_matches(tmp_path / f"m.{suffix}", make(rng, camera1=uncertain, image_size2=(640, 480)))
    read = read_matches(path)
    assert (read.camera1, read.camera2) == (uncertain, None)
    assert (read.image_size1, read.image_size2) == (None, (640, 480))


def test_matches_with_sizes_are_a_pair_to_estimate():
    made = make_pair(200, seed=1)
    matches = Matches(made.points1, made.points2, made.scores, image_size1=(1024, 768), image_size2=[1024, 768])
    assert matches.image_size2 == (1024, 768)
    (found,) = caransac.estimate_relative_poses([matches])
    assert pose_error_deg(found.R, found.t, made.R, made.t) < 1


@pytest.mark.parametrize("suffix", ["npz", "txt", "h5"])
def test_empty_matches_are_valid(tmp_path, suffix):
    path = write_matches(tmp_path / f"m.{suffix}", Matches(np.empty((0, 2)), np.empty((0, 2))))
    assert read_matches(path).points1.shape == (0, 2)


def test_any_real_dtype_and_strides_are_accepted(rng):
    table = rng.uniform(0, 100, (5, 8)).astype(np.float32)
    matches = Matches(table[:, ::4], table[:, 1::4], [1, 2, 3, 4, 5])
    assert matches.points1.dtype == matches.points2.dtype == matches.scores.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points1": np.zeros((7, 3))}, r"points1 must have shape \(N, 2\)"),
        ({"points2": np.zeros((6, 2))}, "same length, got 7 and 6"),
        ({"scores": np.zeros(6)}, r"scores must have shape \(7,\)"),
        ({"score_kind": "distance"}, 'score_kind must be "ratio"'),
        ({"image_size1": (640,)}, "image_size1 must be \\(width, height\\)"),
        ({"image_size2": (640, 0)}, "image_size2 must be .* from 1 to"),
        ({"image_size2": (640.5, 480)}, "image_size2 must be .* whole"),
    ],
)
def test_matches_of_wrong_shapes_are_refused(rng, changes, message):
    with pytest.raises(ValueError, match=message):
        make(rng, **changes)


def test_points_and_keypoints_of_opencv_name_their_converter(rng):
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV")
    points = rng.uniform(0, 99, (9, 2))
    keypoints = [cv2.KeyPoint(x, y, 1) for x, y in points]
    for wrong in (points[:, None], keypoints, tuple(keypoints)):
        for call in (Matches, caransac.estimate, caransac.estimate_homography):
            with pytest.raises(ValueError, match=r"points1 must .*caransac\.matches_from converts"):
                call(wrong, wrong)
        assert np.allclose(caransac.matches_from(wrong, wrong).points1, points)
    for wrong in (points[:, :1], points * np.nan):
        with pytest.raises(ValueError, match="points1 must") as raised:
            Matches(wrong, wrong)
        assert "matches_from" not in str(raised.value)


def test_matches_are_printed_in_one_line(rng):
    points = rng.uniform(0, 99, (9, 2))
    camera = caransac.Camera("SIMPLE_PINHOLE", (100.0, 50.0, 40.0), 101, 81)
    assert repr(Matches(points, points)) == "Matches(9, no scores, camera1 unknown, camera2 unknown)"
    assert (
        repr(Matches(points, points, points[:, 0], "confidence", camera, image_size2=(640, 480)))
        == "Matches(9, confidence scores, camera1 SIMPLE_PINHOLE, camera2 unknown 640x480)"
    )


def test_an_archive_of_the_benchmark_contains_matches(tmp_path, rng):
    matches = make(rng)
    pair = Pair("scene", "a-b", matches.points1, matches.points2, matches.scores, *CAMERAS, np.eye(3), np.eye(3)[0])
    path = write_npz(tmp_path, pair)
    read = read_matches(path)
    assert_equal(read, matches)
    assert (read.camera1, read.camera2) == CAMERAS
    write_matches(path, read)
    with pytest.raises(ValueError, match="no true pose"):
        list(read_npz(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3 4\n1 2 three 4\n", "line 2: .*three"),
        ("# a comment\n\n1 2 3\n", "line 3 has 3 numbers"),
        ("1 2 3 4 0.5\n1 2 3 4\n", "line 2 has 4 numbers.*5"),
        ("1 2 3 nan\n", "line 1 .*not finite"),
        ("<html>\n", "line 1"),
    ],
)
def test_errors_in_a_text_name_the_line(tmp_path, text, message):
    path = tmp_path / "m.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"m\.txt: {message}"):
        read_matches(path)


@pytest.mark.parametrize("suffix", ["npz", "h5"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["points1", "points2", "scores"])
def test_numbers_that_are_not_finite_are_refused_by_name(tmp_path, rng, suffix, value, name):
    matches = make(rng)
    getattr(matches, name)[3] = value
    path = write_matches(tmp_path / f"m.{suffix}", matches)
    with pytest.raises(ValueError, match=rf"m\.{suffix}: {name} must not contain NaN, infinity"):
        read_matches(path)


def test_text_takes_commas_comments_and_names_its_scores(tmp_path):
    path = tmp_path / "m.txt"
    path.write_text("# x1 y1 x2 y2 confidence\n1, 2, 3, 4, 0.5  # the first\n\n5 6 7 8 .25\n")
    matches = read_matches(path)
    assert matches.points2.tolist() == [[3, 4], [7, 8]]
    assert matches.scores.tolist() == [0.5, 0.25]
    assert matches.score_kind == "confidence"


def test_h5_files_contain_pairs_by_key(tmp_path, rng):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    table, path = rng.uniform(0, 100, (6, 5)), tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file["a-b"] = table[:, :4]
    assert read_matches(path).scores is None  # a file with one pair needs no key
    with h5py.File(path, "a") as file:
        file["a-c"] = table
        file["a/d/x1"], file["a/d/x2"] = table[:, :2], table[:, 2:4]
        file["wrong"] = table[:, :3]
    np.testing.assert_array_equal(read_matches(path, "a-c").scores, table[:, 4])
    np.testing.assert_array_equal(read_matches(path, "a/d").points2, table[:, 2:4])
    for key, message in ((None, "4 pairs.*a-b, a-c"), ("b", "no key 'b'"), ("wrong", r"\(6, 3\)"), ("a", "has no x1")):
        with pytest.raises(ValueError, match=rf"m\.h5: .*{message}"):
            read_matches(path, key)


@pytest.mark.parametrize("suffix", ["npz", "h5"])
@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_broken_archives_are_named(tmp_path, suffix, content):
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError), match=rf"m\.{suffix}"):
        read_matches(path)


def test_a_single_array_is_not_an_archive(tmp_path):
    path = tmp_path / "m.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros((9, 4)))
    with pytest.raises(ValueError, match=r"m\.npz is not an npz archive"):
        read_matches(path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, weights=np.zeros(3))
    with pytest.raises(ValueError, match=r"m\.npz: no array points1"):
        read_matches(path)


def test_errors_of_unreadable_files_name_the_reason(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_matches(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"end in \.npz, \.txt, \.h5"):
        read_matches(tmp_path / "m.csv")
    with pytest.raises(ValueError, match="must end in"):
        write_matches(tmp_path / "m.csv", Matches(np.empty((0, 2)), np.empty((0, 2))))
    (tmp_path / "m.txt").write_text("")
    with pytest.raises(ValueError, match="for h5 files"):
        read_matches(tmp_path / "m.txt", "a-b")


def test_archives_and_h5_files_with_odd_entries_are_refused_by_name(tmp_path, rng):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    points = rng.uniform(0, 500, (7, 2))
    path = tmp_path / "odd.npz"
    camera = {"camera1_model": "PINHOLE", "camera1_params": [500, 500, 3, 4]}
    for arrays, message in (
        ({"points1": points + 1j, "points2": points}, "points1 must contain real numbers"),
        (
            {"points1": points, "points2": points, **camera, "camera1_size": [1, 2, 3]},
            r"camera1_size must be \(width, h",
        ),
        ({"points1": points, "points2": points, "camera1_model": "PINHOLE"}, "camera1_params"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=rf"odd.npz: .*{message}"):
            read_matches(path)
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file["text"] = "no matches"
        group = file.create_group("camera")
        group["x1"] = group["x2"] = points
        group.create_group("camera1")
    for key in ("text", "camera"):
        with pytest.raises(ValueError, match=r"odd.h5: "):
            read_matches(path, key)
    h5py.File(path, "w").close()
    with pytest.raises(ValueError, match="it is empty"):
        read_matches(path)


def test_a_text_of_impossible_characters_is_refused(tmp_path, rng):
    path = tmp_path / "matches.npz"
    impossible = np.frombuffer(b"\xff\xff\xff\xff", "<U1")  # found by fuzzing: numpy raises SystemError
    for name in ("score_kind", "camera1_model"):
        arrays = {"points1": rng.normal(size=(9, 2)), "points2": rng.normal(size=(9, 2)), "scores": np.ones(9)}
        np.savez(path, **arrays, camera1_params=np.ones(3), **{name: impossible})
        with pytest.raises(ValueError, match="do not exist"):
            read_matches(path)


def test_open_files_get_an_archive(rng, tmp_path):
    matches, file = make(rng), BytesIO()
    assert write_matches(file, matches) is file
    (tmp_path / "m.npz").write_bytes(file.getvalue())
    assert np.array_equal(read_matches(tmp_path / "m.npz").points1, matches.points1)


def test_cameras_come_in_all_forms(rng):
    K = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
    matches = make(rng, camera1=K, camera2=(K, np.zeros(5)))
    assert matches.camera1 == Camera("PINHOLE", (500, 510, 320, 240))
    assert matches.camera2.model == "FULL_OPENCV"
    with pytest.raises(ValueError, match="camera2: K must be 3x3"):
        make(rng, camera2=np.eye(4))


def test_images_are_passed_on_to_the_estimators_and_not_written(rng, tmp_path):
    taken = photograph(rng)
    matches = Matches(**taken.matches, camera1=taken.camera, camera2=taken.camera, images=taken.images)
    found = caransac.estimate(**matches.arguments())
    assert found.num_refined > 200
    assert caransac.estimate_relative_poses([matches])[0].num_refined == found.num_refined
    written = read_matches(write_matches(tmp_path / "m.npz", matches))
    assert written.images is None
    np.testing.assert_array_equal(written.points2, taken.points2)
    made = caransac.matches_from(taken.points1, taken.points2, images=taken.images)
    assert made.images is taken.images

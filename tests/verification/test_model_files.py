"""Files of a COLMAP model: read like pycolmap reads them; truncated or invalid files are refused by name."""

import sqlite3
import struct
import tracemalloc
from contextlib import closing

import numpy as np
import pycolmap
import pytest
from hostile import change_bytes

from caransac.geometry import rotation_from_quaternion
from caransac.verification import model_files
from caransac.verification.colmap_cameras import MODELS, read_camera
from caransac.verification.colmap_model import ColmapModel
from caransac.verification.model_files import read_cameras, read_images, read_points


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of pycolmap, and the folders with its binary files and its text files."""
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 1, 1, 4, 30
    pycolmap.set_random_seed(1)
    model = pycolmap.synthesize_dataset(options)
    folders = [tmp_path_factory.mktemp(name) for name in ("binary", "text")]
    model.write_binary(str(folders[0]))
    model.write_text(str(folders[1]))
    return model, *folders


def test_points_and_camera_agree_with_pycolmap(models):
    model, *folders = models
    known = sorted(model.points3D.items())
    for folder in folders:
        points, observations = read_points(folder)
        np.testing.assert_allclose(points, [point.xyz for _, point in known], rtol=1e-14)
        assert sorted(observations.tolist()) == sorted(
            [element.image_id, element.point2D_idx, row]
            for row, (_, point) in enumerate(known)
            for element in point.track.elements
        )
        assert np.all(np.diff(observations[:, 0]) >= 0)
        cameras = read_cameras(folder)
        assert set(cameras) == set(model.cameras.keys())
        for number, stored in model.cameras.items():
            camera = read_camera(*cameras[number])
            assert (camera.model, camera.width, camera.height) == (stored.model.name, stored.width, stored.height)
            np.testing.assert_allclose(camera.params, stored.params)


def test_images_agree_with_pycolmap(models):
    model, *folders = models
    for folder in folders:
        images = read_images(folder)
        assert set(images) == set(model.images.keys())
        for number, stored in model.images.items():
            image, pose = images[number], stored.cam_from_world()
            assert (image.number, image.name, image.camera_id) == (number, stored.name, stored.camera_id)
            np.testing.assert_allclose(rotation_from_quaternion(image.quaternion), pose.rotation.matrix(), atol=1e-12)
            np.testing.assert_allclose(image.translation, pose.translation)


@pytest.mark.parametrize("line", ["1 0 0 0 0 1 2 3 1 a.png", "1 1 0 0 0 nan 2 3 1 a.png", "1 1 0 0 0 1 2", "x"])
def test_images_without_a_pose_are_refused_by_name(tmp_path, line):
    (tmp_path / "images.txt").write_text(f"# comment\n{line}\n\n")
    with pytest.raises(ValueError, match=r"images.txt: line 2"):
        read_images(tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_cameras_of_consecutive_records_of_every_model_are_found(tmp_path, name):
    model = pycolmap.Reconstruction()
    for number, kind in ((3, name), (5, "PINHOLE")):
        kind = getattr(pycolmap.CameraModelId, kind)
        model.add_camera(pycolmap.Camera.create_from_model_id(number, kind, 500.0, 640, 480))
    model.write_binary(str(tmp_path))
    binary = read_cameras(tmp_path)
    (tmp_path / "cameras.bin").unlink()
    model.write_text(str(tmp_path))
    assert binary == read_cameras(tmp_path)
    assert [binary[3][1], len(binary[3][4]) / 8] == [MODELS.index(name), len(model.cameras[3].params)]
    assert read_camera(*binary[5]).params == (500, 500, 320, 240)


@pytest.mark.parametrize(
    ("name", "read"), [("points3D.bin", read_points), ("cameras.bin", read_cameras), ("images.bin", read_images)]
)
def test_files_that_are_cut_off_are_refused_by_name(models, tmp_path, name, read):
    data = (models[1] / name).read_bytes()
    for length in [*range(0, len(data) - 1, 53), len(data) - 1]:
        (tmp_path / name).write_bytes(data[:length])
        with pytest.raises(ValueError, match=rf"{name}: it is truncated"):
            read(tmp_path)


def test_other_files_of_a_model_are_not_read(models, tmp_path):
    """pycolmap hangs on a truncated frames.bin."""
    for name in ("points3D.bin", "cameras.bin"):
        (tmp_path / name).write_bytes((models[1] / name).read_bytes())
    for name in ("frames.bin", "rigs.bin", "images.bin"):
        (tmp_path / name).write_bytes((models[1] / name).read_bytes()[:-5])
    assert len(read_points(tmp_path)[0]) == 30
    assert len(read_cameras(tmp_path)) == 1


def test_impossible_counts_take_no_memory(tmp_path):
    (tmp_path / "points3D.bin").write_bytes(struct.pack("<Q", 2**63) + bytes(51))
    with pytest.raises(ValueError, match=r"points3D\.bin: it is truncated"):
        read_points(tmp_path)
    (tmp_path / "points3D.bin").write_bytes(struct.pack("<Q", 1) + bytes(43) + struct.pack("<Q", 2**60))
    with pytest.raises(
        ValueError, match=r"points3D\.bin: it is truncated, or not a file of COLMAP: \d+ bytes do not follow after 59"
    ):
        read_points(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 1])
def test_points_take_little_more_memory_than_their_file(tmp_path, length):
    point = struct.pack("<Q3d11xQ", 1, 0, 0, 4, length) + bytes(8 * length)
    data = struct.pack("<Q", 60_001) + 60_000 * point + struct.pack("<Q3d11xQ2I", 2, 0, 0, 4, 1, 3, 5)
    (tmp_path / "points3D.bin").write_bytes(data)
    tracemalloc.start()
    points, observations = read_points(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * len(data)
    assert len(points) == len(observations) == 1 + 60_000 * length  # points that no image sees are left out
    assert observations[-1].tolist() == [3, 5, 60_000 * length]


def test_points_are_in_the_order_of_their_numbers(tmp_path):
    (tmp_path / "points3D.txt").write_text("7 0 0 7 9 9 9 1 2 5 1 3\n3 0 0 3 9 9 9 1\n4 0 0 4 9 9 9 1 1 9 2 8\n")
    points, observations = read_points(tmp_path)
    assert points[:, 2].tolist() == [4, 7]
    assert observations.tolist() == [[1, 9, 0], [1, 3, 1], [2, 8, 0], [2, 5, 1]]


def test_damaged_files_are_read_or_refused_by_name(models, tmp_path, rng):
    for folder, suffix in zip(models[1:], ("bin", "txt"), strict=True):
        for name, read in (("points3D", read_points), ("cameras", read_cameras)):
            path = tmp_path / f"{name}.{suffix}"
            for _ in range(25):
                path.write_bytes(change_bytes((folder / path.name).read_bytes(), rng))
                try:
                    read(tmp_path)
                except ValueError as error:
                    assert str(path.with_suffix("")) in str(error).replace(": points3D", "/points3D")
            path.unlink()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n", " has no points"),
        ("1 0 0 4 9 9 9 0.5\n", " has no points that an image sees"),
        ("1 0 0 4 9 9 9 0.5 1\n", r"\.txt: line 1: cannot reshape"),
        ("# a comment\n\n1 0 0 four 9 9 9 0.5 1 0\n", r"\.txt: line 3: could not convert"),
        ("1 0 0 nan 9 9 9 0.5 1 0\n", ": points3D must not contain NaN"),
        ("1 0 0 4 9 9 9 0.5 1 -1\n", r"\.txt: line 1: "),
        ("1 0 0 4\n", r"\.txt: line 1: not enough values"),
        (f"1 0 0 4 9 9 9 0.5 1 {10**30}\n", r"\.txt: line 1: "),
    ],
)
def test_texts_that_are_something_else_are_refused_by_line(tmp_path, text, message):
    (tmp_path / "points3D.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_points(tmp_path)


def test_a_folder_without_a_model_is_named(tmp_path):
    for read in (read_points, read_cameras):
        with pytest.raises(FileNotFoundError, match="is not a COLMAP model: there is no"):
            read(tmp_path)


def test_a_long_file_can_be_interrupted(models, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(model_files, "check", interrupt)
    for folder in models[1:]:
        with pytest.raises(KeyboardInterrupt):
            read_points(folder)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("DELETE FROM cameras", "table cameras, camera 1: there is no such camera"),
        ("UPDATE images SET camera_id = 'front'", "table cameras, camera 'front': there is no such camera"),
        ("UPDATE cameras SET params = x'00', prior_focal_length = 1", "table cameras, camera 1: corrupt camera 1"),
        ("UPDATE cameras SET width = 'wide'", "table cameras, camera 1: width"),
        ("UPDATE keypoints SET rows = 9", "table keypoints, image 1: it has 16 bytes of blob for 9 rows of 2"),
        ("UPDATE keypoints SET data = x'0000c07f00000000000000000000c07f'", "table keypoints, image 1: .*NaN"),
        ("UPDATE keypoints SET cols = 1, data = zeroblob(8)", "table keypoints, image 1: keypoints must have shape"),
        ("UPDATE descriptors SET cols = 64, rows = 4", "table descriptors, image 1: 64 numbers are not a descriptor"),
        ("UPDATE descriptors SET data = 'text'", "table descriptors, image 1: it has 4 bytes of text"),
    ],
)
def test_what_is_wrong_in_a_database_is_named_with_its_table(tmp_path, command, message):
    database = tmp_path / "database.db"
    pycolmap.Database.open(database).close()
    with closing(sqlite3.connect(database)) as connection, connection:
        params = np.array([500.0, 320, 240]).tobytes()
        connection.execute("INSERT INTO cameras VALUES (1, 0, 640, 480, ?, 0)", (params,))
        connection.execute("INSERT INTO images (image_id, name, camera_id) VALUES (1, 'a.png', 1)")
        connection.execute("INSERT INTO keypoints (image_id, rows, cols, data) VALUES (1, 2, 2, zeroblob(16))")
        connection.execute("INSERT INTO descriptors VALUES (1, 1, 2, 128, zeroblob(256))")
        model = ColmapModel(np.zeros((1, 3)), np.zeros((1, 128), np.float32), database, {}, np.empty((0, 2), np.uint32))
    features, camera = model.stored("a.png")
    assert (features.points2d.shape, camera.width) == ((2, 2), 640)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(command)
    with pytest.raises(ValueError, match=rf"database\.db: {message}"):
        model.stored("a.png")

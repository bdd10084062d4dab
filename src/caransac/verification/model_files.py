"""Read the files points3D, cameras and images of a COLMAP model, binary or text, for localisation.

The files are untrusted. pycolmap does not return for some truncated files, so they are parsed here.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_reals
from caransac._support.files import naming
from caransac._support.interrupts import check
from caransac._support.untrusted import read_bytes, read_text
from caransac.camera import PARAMETERS
from caransac.geometry import Array
from caransac.verification.colmap_cameras import MODELS

COUNT = Struct("<Q")
POINT = Struct("<Q3d11xQ")  # number, position, (colour and error), length of the track
OBSERVATION = 8  # bytes of one observation in a track: numbers of the image and of the keypoint
CAMERA = Struct("<IiQQ")  # number, model, width, height; the parameters follow
IMAGE = Struct("<I7dI")  # number, quaternion and translation, camera; the name and the keypoints follow
KEYPOINT = 24  # bytes of a keypoint of an image: x, y, number of the 3D point
# Number of parameters of models that `Camera` does not support.
NUM_REFUSED = {"RAD_TAN_THIN_PRISM_FISHEYE": 16, "EQUIRECTANGULAR": 2}

StoredCamera = tuple[int, int, int, int, bytes]  # arguments of `read_camera`


class StoredImage(NamedTuple):
    """An image of a model, with its pose ``x = R X + t``.

    Attributes:
        number: its number in the model.
        quaternion: (4,) rotation R as w, x, y, z.
        translation: (3,) translation t.
        camera_id: number of its camera.
        name: path of its file in the folder of the photographs.
    """

    number: int
    quaternion: Array
    translation: Array
    camera_id: int
    name: str


def read_points(folder: Path) -> tuple[Array, NDArray[np.int64]]:
    """Return the points (n, 3) of a model, and observations (m, 3) ordered by image: (image, keypoint, point row).

    The points are those that an image sees, in the order of their numbers.

    Raises:
        OSError: the file does not exist.
        ValueError: the file is invalid or truncated. The message names it.
    """
    # Flat buffers: lists and arrays for each point would take twelve times as much memory as the file.
    numbers, places, lengths, tracks = list[int](), array("d"), array("q"), bytearray()
    for number, place, track in _records(folder, "points3D", _point_at, _point_of):
        if track:  # a point that no image sees has no descriptor
            numbers.append(number)
            places.extend(place)
            lengths.append(len(track) // OBSERVATION)
            tracks += track
    if not numbers:
        raise ValueError(f"{folder} has no points that an image sees")
    order = np.argsort(np.array(numbers), kind="stable")
    rows = np.repeat(np.argsort(order), lengths)
    seen = np.frombuffer(tracks, "<u4").reshape(-1, 2)
    observations = np.column_stack([seen, rows])
    points = as_reals(np.array(places).reshape(-1, 3)[order], f"{folder}: points3D")
    return points, observations[np.lexsort((rows, seen[:, 0]))]


def read_cameras(folder: Path) -> dict[int, StoredCamera]:
    """Return the cameras of a model by their numbers; see `read_points` for errors."""
    return {camera[0]: camera for camera in _records(folder, "cameras", _camera_at, _camera_of)}


def read_images(folder: Path) -> dict[int, StoredImage]:
    """Return the images of a model by their numbers; see `read_points` for errors."""
    return {image.number: image for image in _records(folder, "images", _image_at, _image_of, lines=2)}


def _records(
    folder: Path,
    name: str,
    read_at: Callable[[bytes, int], tuple[Any, int]],
    read_line: Callable[[list[str]], Any],
    *,
    lines: int = 1,
) -> Iterator[Any]:
    """Yield the records of a binary file, or of a text file if there is no binary one.

    `read_at` returns the record at a position of the data and its end. `read_line` converts the words of a line to a
    record. If a record has several lines, only the first is read.
    """
    path = folder / f"{name}.bin"
    if path.is_file():
        with naming(path):
            data, end = read_bytes(path), COUNT.size
            for _ in range(COUNT.unpack(_take(data, 0, end))[0]):
                check()
                record, end = read_at(data, end)
                yield record
        return
    path = path.with_suffix(".txt")
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not a COLMAP model: there is no {name}.bin or {name}.txt")
    numbered = enumerate(read_text(path).splitlines(), 1)
    for number, line in numbered:
        if line.strip() and not line.startswith("#"):
            check()
            with naming(f"{path}: line {number}"):
                yield read_line(line.split())
            for _ in range(lines - 1):
                next(numbered, None)


def _take(data: bytes, start: int, size: int) -> bytes:
    if size > len(data) - start:
        raise ValueError(f"it is truncated, or not a file of COLMAP: {size} bytes do not follow after {start}")
    return data[start : start + size]


def _point_at(data: bytes, start: int) -> tuple[Any, int]:
    number, *place, length = POINT.unpack(_take(data, start, POINT.size))
    track = _take(data, start + POINT.size, OBSERVATION * length)
    return (number, place, track), start + POINT.size + len(track)


def _point_of(words: list[str]) -> Any:
    number, x, y, z, _, _, _, _, *track = words
    observations = np.array([*map(int, track)], "<u4").reshape(-1, 2)
    return int(number), [float(x), float(y), float(z)], observations.tobytes()


def _camera_at(data: bytes, start: int) -> tuple[StoredCamera, int]:
    number, model, width, height = CAMERA.unpack(_take(data, start, CAMERA.size))
    if model not in range(len(MODELS)):
        raise ValueError(f"camera {number} has model {model}, which caransac does not know")
    size = 8 * NUM_REFUSED.get(MODELS[model], len(PARAMETERS.get(MODELS[model], ())))
    params = _take(data, start + CAMERA.size, size)
    return (number, model, width, height, params), start + CAMERA.size + size


def _camera_of(words: list[str]) -> StoredCamera:
    number, model, width, height, *params = words
    if model not in MODELS:
        raise ValueError(f"camera {number} has model {model}, which caransac does not know")
    return int(number), MODELS.index(model), int(width), int(height), np.array([*map(float, params)], "<f8").tobytes()


def _image_at(data: bytes, start: int) -> tuple[StoredImage, int]:
    number, *pose, camera_id = IMAGE.unpack(_take(data, start, IMAGE.size))
    start += IMAGE.size
    end = data.find(b"\0", start)
    name = _take(data, start, (len(data) if end < 0 else end) + 1 - start)[:-1]
    start += len(name) + 1
    (count,) = COUNT.unpack(_take(data, start, COUNT.size))
    start += COUNT.size
    _take(data, start, KEYPOINT * count)
    return _image(number, pose, camera_id, os.fsdecode(name)), start + KEYPOINT * count


def _image_of(words: list[str]) -> StoredImage:
    number, qw, qx, qy, qz, tx, ty, tz, camera_id, *name = words
    return _image(int(number), [*map(float, (qw, qx, qy, qz, tx, ty, tz))], int(camera_id), " ".join(name))


def _image(number: int, pose: list[float], camera_id: int, name: str) -> StoredImage:
    values = as_reals(pose, f"pose of image {number}")
    if not 0 < np.linalg.norm(values[:4]) < np.inf:
        raise ValueError(f"the rotation of image {number} is not a quaternion")
    return StoredImage(number, values[:4], values[4:], camera_id, name)

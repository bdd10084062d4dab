"""The files of a COLMAP model that localisation reads: points3D and cameras, binary or text.

They may come from anybody. They are read here because pycolmap does not return from some files that are cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_reals, shorten
from caransac._support.files import naming
from caransac._support.interrupts import check
from caransac._support.untrusted import read_bytes, read_text
from caransac.camera import PARAMETERS
from caransac.geometry import Array
from caransac.verification.colmap_cameras import MODELS

COUNT = Struct("<Q")
POINT = Struct("<Q3d11xQ")  # number, place, (colour and error), length of the track
CAMERA = Struct("<IiQQ")  # number, model, width, height; parameters follow

NUM_PARAMETERS = {"RAD_TAN_THIN_PRISM_FISHEYE": 16, "EQUIRECTANGULAR": 2} | {
    name: len(names) for name, names in PARAMETERS.items()
}

StoredCamera = tuple[int, int, int, int, bytes]  # arguments of `read_camera`
Point = tuple[int, tuple[float, ...], NDArray[np.int64]]  # number, place, and (k, 2) images and keypoints of the track


def read_points(folder: Path) -> tuple[Array, NDArray[np.int64]]:
    """Return the points (n, 3) of a model, and their observations (m, 3), image by image: image, keypoint, row.

    Raises:
        OSError: there is no such file.
        ValueError: it is something else, or cut off; the message names it.
    """
    path = _find(folder, "points3D")
    binary = path.suffix == ".bin"
    with naming(path):
        points = sorted(_binary_points(read_bytes(path)) if binary else _text_points(read_text(path)), key=_number)
        if not points:
            raise ValueError("there are no points")
        places = as_reals([place for _, place, _ in points], "points")
        rows = np.repeat(np.arange(len(points)), [len(track) for *_, track in points])
        seen = np.concatenate([track for *_, track in points])
        if seen.min(initial=0) < 0:
            raise ValueError("a track has a negative number")
    return places, np.column_stack([seen, rows])[np.argsort(seen[:, 0], kind="stable")]


def read_cameras(folder: Path) -> dict[int, StoredCamera]:
    """Return the cameras of a model by their numbers; see `read_points` for errors."""
    path = _find(folder, "cameras")
    with naming(path):
        cameras = _binary_cameras(read_bytes(path)) if path.suffix == ".bin" else _text_cameras(read_text(path))
        return {camera[0]: camera for camera in cameras}


def _find(folder: Path, name: str) -> Path:
    """Return the binary file of a model, or the text if there is none."""
    for path in (folder / f"{name}.bin", folder / f"{name}.txt"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} is not a COLMAP model: there is no {name}.bin or {name}.txt")


def _number(point: Point) -> int:
    return point[0]


def _binary_points(data: bytes) -> Iterator[Point]:
    (count,), start = _unpack(COUNT, data, 0), COUNT.size
    for _ in range(count):
        check()
        number, *place, length = _unpack(POINT, data, start)
        start += POINT.size
        if 8 * length > len(data) - start:
            raise ValueError(f"it is cut off: point {number} has a track of {length} observations")
        yield number, tuple(place), np.frombuffer(data, "<u4", 2 * length, start).astype(np.int64).reshape(-1, 2)
        start += 8 * length


def _text_points(text: str) -> Iterator[Point]:
    for number, line in _lines(text):
        check()
        fields = line.split()
        if len(fields) < 8 or len(fields) % 2:
            raise ValueError(f"line {number} is not a point with its track: {shorten(line)}")
        with naming(f"line {number}"):
            track = np.array([int(field) for field in fields[8:]], np.int64).reshape(-1, 2)
            yield int(fields[0]), tuple(map(float, fields[1:4])), track


def _binary_cameras(data: bytes) -> Iterator[StoredCamera]:
    (count,), start = _unpack(COUNT, data, 0), COUNT.size
    for _ in range(count):
        check()
        number, model, width, height = _unpack(CAMERA, data, start)
        if model not in range(len(MODELS)):
            raise ValueError(f"camera {number} has model {model}, which caransac does not know")
        params = Struct(f"{8 * NUM_PARAMETERS[MODELS[model]]}s")
        (values,) = _unpack(params, data, start + CAMERA.size)
        yield number, model, width, height, values
        start += CAMERA.size + params.size


def _text_cameras(text: str) -> Iterator[StoredCamera]:
    for number, line in _lines(text):
        fields = line.split()
        if len(fields) < 4 or fields[1] not in MODELS:
            raise ValueError(f"line {number} is not a camera that caransac knows: {shorten(line)}")
        with naming(f"line {number}"):
            params = np.array([float(field) for field in fields[4:]], "<f8").tobytes()
            yield int(fields[0]), MODELS.index(fields[1]), int(fields[2]), int(fields[3]), params


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines that are not comments, with their numbers."""
    return ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#"))


def _unpack(layout: Struct, data: bytes, start: int) -> tuple[Any, ...]:
    """Return the values at a place of a file."""
    if len(data) - start < layout.size:
        raise ValueError(f"it is cut off, or not a file of COLMAP: it ends after {len(data)} bytes")
    return layout.unpack_from(data, start)

"""A COLMAP model for localisation: its 3D points and their descriptors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_points, shorten
from caransac._support.files import as_path, naming
from caransac._support.interrupts import check
from caransac._support.sqlite_files import check_schema, connect, explaining, read_blob
from caransac.camera import Camera
from caransac.camera_priors import EXIF_FOCAL_DEVIATION
from caransac.geometry import Array, Floats
from caransac.io.descriptors import match_vectors
from caransac.verification.colmap_cameras import read_camera
from caransac.verification.model_files import StoredCamera, read_cameras, read_points

KEYS = {"cameras": "camera_id", "images": "image_id", "keypoints": "image_id", "descriptors": "image_id"}
OTHERWISE = "is not a COLMAP database with features: {error}"
PIXEL_CENTRE = 0.5  # coordinate of the centre of the top-left pixel in COLMAP; OpenCV has 0


@dataclass(frozen=True, eq=False)
class Features:
    """Keypoints of an image.

    Attributes:
        points2d: (n, 2) pixels in COLMAP's convention.
        vectors: (n, 128) RootSIFT descriptors of unit length.
    """

    points2d: Array
    vectors: Floats


@dataclass(frozen=True, eq=False)
class ColmapModel:
    """A sparse model with a descriptor for each point.

    Attributes:
        points3d: (n, 3) 3D points.
        vectors: (n, 128) mean descriptor of each point, of unit length.
        database: path of the database that the model was made from.
        cameras: refined cameras of the model in the form of its files, by their number in the database.
        observations: (m, 2) numbers of an image and of the row of a point that it sees, ordered by image.
    """

    points3d: Array
    vectors: Floats
    database: Path
    cameras: Mapping[int, StoredCamera]
    observations: NDArray[np.uint32]

    @classmethod
    def read(cls, folder: str | Path, database: str | Path) -> ColmapModel:
        """Read a model from COLMAP's files cameras and points3D, and from the database with its features.

        Raises:
            ValueError: the content of a file is invalid.
            OSError: a file is missing.
        """
        folder, database = as_path(folder, "folder"), as_path(database, "database")
        for path, what in ((folder, "folder of a model"), (database, "database")):
            if not path.exists():
                raise FileNotFoundError(f"no such {what}: {path}")
        points3d, observations = read_points(folder)
        vectors = np.zeros((len(points3d), 128), np.float32)
        images, first = np.unique(observations[:, 0], return_index=True)
        with _open(database) as connection:
            for image_id, seen in zip(images.tolist(), np.split(observations, first[1:]), strict=True):
                check()
                _, index, rows = seen.T
                found = _read_descriptors(connection, image_id, database)
                if found is None or len(found) <= index.max():
                    raise ValueError(f"{database} does not have the features of image {image_id} that {folder} uses")
                np.add.at(vectors, rows, found[index])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.asarray(vectors / np.maximum(lengths, 1e-9), np.float32)
        return cls(points3d, vectors, database, read_cameras(folder), observations[:, [0, 2]].astype(np.uint32))

    @property
    def camera(self) -> Camera | None:
        """Camera of the model if all images share one, otherwise None."""
        return read_camera(*next(iter(self.cameras.values()))) if len(self.cameras) == 1 else None

    def match(self, features: Features) -> tuple[Array, NDArray[np.intp], Array]:
        """Match features to points.

        Return pixels (m, 2), rows (m,) of `points3d`, and ratios (m,) of the distances to the nearest and the
        second-nearest point.
        """
        index2d, index3d, ratios_sq = match_vectors(features.vectors, self.vectors)
        return features.points2d[index2d], np.asarray(index3d, np.intp), np.sqrt(ratios_sq)

    def stored(self, name: str) -> tuple[Features, Camera] | None:
        """Return features and camera of an image in the database, by its name there; None if there is no such image.

        The model's camera is preferred, because the reconstruction refined it with all its images.
        """
        with _open(self.database) as connection:
            command = "SELECT image_id, camera_id FROM images WHERE name = CAST(? AS TEXT)"
            row = connection.execute(command, (os.fsencode(name),)).fetchone()  # names may be no UTF-8
            if row is None:
                return None
            image_id, camera_id = row
            vectors = _read_descriptors(connection, image_id, self.database)
            with naming(f"{self.database}: table keypoints, image {image_id}"):
                blob = read_blob(connection, "keypoints", "image_id", image_id, 4)
                if vectors is None or blob is None or len(vectors) != blob[0]:
                    return None
                points = as_points(np.frombuffer(blob[2], np.float32).reshape(blob[:2])[:, :2], "keypoints")
            if camera_id in self.cameras:
                return Features(points, vectors), read_camera(*self.cameras[camera_id])
            with naming(f"{self.database}: table cameras, camera {shorten(camera_id)}"):
                return Features(points, vectors), _camera_of(connection, camera_id)


def in_colmap_pixels(camera: Camera) -> Camera:
    """Convert a camera from OpenCV's pixels, whose first centre is (0, 0), to COLMAP's, whose first is (0.5, 0.5)."""
    return camera.adjusted(1.0, (PIXEL_CENTRE, PIXEL_CENTRE), camera.focal_deviation)


@contextmanager
def _open(database: Path) -> Iterator[Any]:
    with explaining(database, OTHERWISE), closing(connect(database)) as connection:
        check_schema(connection, KEYS, database)
        yield connection


def _read_descriptors(connection: Any, image_id: int, database: Path) -> NDArray[np.float32] | None:
    """Read the descriptors (n, 128) of an image, as RootSIFT of unit length."""
    with naming(f"{database}: table descriptors, image {image_id}"):
        blob = read_blob(connection, "descriptors", "image_id", image_id, 1)
        if blob is None:
            return None
        rows, columns, data = blob
        if columns != 128:
            raise ValueError(f"{columns} numbers are not a descriptor of SIFT, which has 128")
    vectors = np.frombuffer(data, np.uint8).reshape(rows, columns).astype(np.float32)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), np.float32)


def _camera_of(connection: Any, camera_id: int) -> Camera:
    """Read a camera. Its prior focal length is accurate to a few per cent; without one, only its size is known."""
    command = "SELECT model, width, height, params, prior_focal_length FROM cameras WHERE camera_id = ?"
    row = connection.execute(command, (camera_id,)).fetchone()
    if row is None:
        raise ValueError("there is no such camera")
    model, width, height, params, prior = row
    if not prior:
        return in_colmap_pixels(Camera.of_unknown_focal(width, height))
    camera = read_camera(camera_id, model, width, height, params)
    return camera if camera.is_fisheye else replace(camera, focal_deviation=EXIF_FOCAL_DEVIATION)

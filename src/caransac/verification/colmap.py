"""COLMAP's SQLite database: matches in, two-view geometries out. It needs no COLMAP.

A pair's number is ``2147483647 * id1 + id2`` with ``id1 < id2``, and everything in the database is in that order.
Keypoints and cameras share one pixel convention (the centre of the first pixel is at 0.5, 0.5), so neither is shifted.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import LARGEST
from caransac.camera import PARAMETERS, Camera
from caransac.geometry import Array, Floats, quaternion_from_rotation
from caransac.verification.keypoints import KeypointCache
from caransac.verification.records import (
    CalibrationPolicy,
    Config,
    MatchIndices,
    PairGeometry,
    PairMatches,
    PairReport,
    check_calibrated,
)

MAX_IMAGES = 2147483647
LOCK_TIMEOUT_S = 10.0
CACHED_DESCRIPTORS = 64  # images whose descriptors are kept in memory, about 60 MB
SIFT, SIFT_LENGTH = 0, 128  # COLMAP's number of this descriptor, and its length
MODELS = (  # COLMAP's, by number
    "SIMPLE_PINHOLE",
    "PINHOLE",
    "SIMPLE_RADIAL",
    "RADIAL",
    "OPENCV",
    "OPENCV_FISHEYE",
    "FULL_OPENCV",
    "FOV",
    "SIMPLE_RADIAL_FISHEYE",
    "RADIAL_FISHEYE",
    "THIN_PRISM_FISHEYE",
    "RAD_TAN_THIN_PRISM_FISHEYE",
    "SIMPLE_DIVISION",
    "DIVISION",
    "SIMPLE_FISHEYE",
    "FISHEYE",
    "EUCM",
    "EQUIRECTANGULAR",
)
# Older databases lack the last ones.
COLUMNS = ("pair_id", "rows", "cols", "data", "config", "F", "E", "H", "qvec", "tvec")
TABLES = ("cameras", "images", "keypoints", "matches", "two_view_geometries")


@dataclass(frozen=True)
class _Image:
    """An image: its name and its camera, None where its focal length is not trusted."""

    name: str
    camera: Camera | None


class ColmapDatabase:
    """A COLMAP database as a source of pairs, and the place their geometries go to."""

    def __init__(
        self,
        path: str | Path,
        *,
        calibrated: CalibrationPolicy = "auto",
        overwrite: bool = False,
        ratio_from_descriptors: bool = False,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """Open a database and see what is to be done.

        Args:
            path: the database.
            calibrated: "auto" asks for a pose where both cameras have a prior focal length and for a fundamental matrix
                elsewhere; "always" trusts every camera, "never" none.
            overwrite: verify all pairs again. What is there is removed together with the first new geometries.
            ratio_from_descriptors: make ratios from the SIFT descriptors, as scores.
            lock_timeout_s: seconds to wait for a database that another program is writing to.

        Raises:
            OSError: it is missing, locked or cannot be written to.
            ValueError: it is no COLMAP database, or has nothing to verify; the message says what to do.
        """
        check_calibrated(calibrated)
        self.path = Path(path)
        self.batch_size = 8 if ratio_from_descriptors else 16  # descriptors are large, where they must travel
        self._descriptors_wanted = ratio_from_descriptors
        self._keypoints = KeypointCache(self._read_keypoints, lambda image_id: self._images[image_id].camera, self.path)
        self._descriptors = lru_cache(CACHED_DESCRIPTORS)(self._read_descriptors)
        self._connection = _connect(self.path, lock_timeout_s)
        try:
            with _explaining(self.path):
                self._columns = self._check_tables()
                self._images = self._read_images(calibrated)
                self.pending, self.kept = self._read_pairs(overwrite)
        except BaseException:
            self.close()
            raise
        self._outdated: Sequence[int] = self.pending if overwrite else ()

    def read(self, key: int) -> PairMatches:
        """A pair with its matches."""
        ids, names = _split(key), self._names(key)
        with _explaining(self.path):
            matches = self._read_matches(key)
            points1, points2, cameras = self._keypoints.matched(ids, names, matches)
            descriptors = None
            if self._descriptors_wanted:
                first, second = (self._descriptors(image_id) for image_id in ids)
                descriptors = first[matches[:, 0]], second
        return PairMatches(
            key=key,
            image1=names[0],
            image2=names[1],
            matches=matches,
            points1=points1,
            points2=points2,
            cameras=cameras,
            descriptors=descriptors,
        )

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Write geometries in one transaction."""
        command = "INSERT OR REPLACE INTO two_view_geometries ({}) VALUES ({})".format(
            ", ".join(self._columns), ", ".join("?" * len(self._columns))
        )
        with _explaining(self.path), self._transaction():
            if self._outdated:
                outdated = ((key,) for key in self._outdated)
                self._connection.executemany("DELETE FROM two_view_geometries WHERE pair_id = ?", outdated)
            rows = (_as_row(geometry) for geometry in found)
            self._connection.executemany(command, ([row[name] for name in self._columns] for row in rows))
        self._outdated = ()

    def finish(self) -> None:
        """Nothing is left to do: every batch is in the database already."""

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _execute(self, command: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(command, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._execute("ROLLBACK")
            raise
        self._execute("COMMIT")

    def _check_tables(self) -> list[str]:
        """Columns of two_view_geometries that we know; raises if this is not a COLMAP database we can write to."""
        there = {name for (name,) in self._execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        wanted = (*TABLES, "descriptors") if self._descriptors_wanted else TABLES
        if missing := [name for name in wanted if name not in there]:
            raise ValueError(
                f"{self.path} is not a COLMAP database, or a very old one: it has no table {missing[0]!r}; make "
                "one with COLMAP's feature extraction and matching"
            )
        with self._transaction():  # a locked or read-only database shows now, not after the first batch
            pass
        return [name for name in self._column_names("two_view_geometries") if name in COLUMNS]

    def _column_names(self, table: str) -> list[str]:
        return [column[1] for column in self._execute(f"PRAGMA table_info({table})")]

    def _read_images(self, calibrated: CalibrationPolicy) -> dict[int, _Image]:
        cameras: dict[int, tuple[Any, ...]] = {
            row[0]: row[1:]
            for row in self._execute("SELECT camera_id, model, width, height, params, prior_focal_length FROM cameras")
        }
        images = {}
        for image_id, name, camera_id in self._execute("SELECT image_id, name, camera_id FROM images"):
            if camera_id not in cameras:
                raise ValueError(f"{self.path}: image {name} has camera {camera_id}, which is not there")
            prior = cameras[camera_id][-1]
            trusted = calibrated == "always" or (calibrated == "auto" and prior)
            images[image_id] = _Image(name, self._camera(camera_id, *cameras[camera_id][:-1]) if trusted else None)
        return images

    def _read_pairs(self, overwrite: bool) -> tuple[list[int], list[PairReport]]:
        """Pairs to verify, and what is known of those that were verified before."""
        pending, kept = [], []
        for key, matches, inliers, config in self._execute(
            "SELECT pair_id, matches.rows, two_view_geometries.rows, config FROM matches"
            " LEFT JOIN two_view_geometries USING (pair_id) WHERE matches.rows > 0 ORDER BY pair_id"
        ):
            # A row of an undefined geometry is a place that some tool made for the verification to come.
            if overwrite or config in (None, Config.UNDEFINED):
                pending.append(key)
            else:
                kept.append(PairReport.of(self._names(key), matches, inliers, config))
        if not pending and not kept:
            raise ValueError(f"{self.path} has no matches: run feature matching first, for example exhaustive_matcher")
        return pending, kept

    def _camera(self, camera_id: int, model: int, width: int, height: int, params: bytes) -> Camera:
        name = MODELS[model] if model in range(len(MODELS)) else f"number {model}"
        if name not in PARAMETERS:
            raise ValueError(
                f"{self.path}: camera {camera_id} has model {name}, which caransac does not know (it knows "
                f"{', '.join(PARAMETERS)}): undistort the images first, or use --calibrated never"
            )
        try:
            return Camera(name, tuple(_array(params, np.float64, -1)), width, height)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.path}: corrupt camera {camera_id}: extract features again ({error})") from error

    def _names(self, key: int) -> tuple[str, str]:
        for image_id in _split(key):
            if image_id not in self._images:
                raise ValueError(f"{self.path}: pair {key} has image {image_id}, which is not there: match again")
        first, second = _split(key)
        return self._images[first].name, self._images[second].name

    def _read_matches(self, key: int) -> MatchIndices:
        rows, cols, data = self._execute("SELECT rows, cols, data FROM matches WHERE pair_id = ?", key).fetchone()
        if cols != 2:
            raise ValueError(f"{self.path}: matches of pair {key} have {cols} columns instead of 2: match again")
        return self._table(data, np.uint32, rows, cols, f"matches of pair {key}: match again")

    def _read_keypoints(self, image_id: int) -> Floats:
        """Pixels (n, 2) of an image's keypoints."""
        row = self._execute("SELECT rows, cols, data FROM keypoints WHERE image_id = ?", image_id).fetchone()
        rows, cols, data = row or (0, 2, b"")
        what = f"keypoints of {self._images[image_id].name}: extract features again"
        points: Floats = np.ascontiguousarray(self._table(data, np.float32, rows, cols, what)[:, :2])
        if points.shape[1] != 2:
            raise ValueError(f"{self.path}: corrupt {what}")
        if not np.all(np.abs(points) < LARGEST):
            raise ValueError(f"{self.path}: NaN, infinity or vast numbers in the {what}")
        return points

    def _read_descriptors(self, image_id: int) -> NDArray[np.uint8]:
        """SIFT descriptors (n, 128) of an image."""
        kind = "type" if "type" in self._column_names("descriptors") else str(SIFT)
        row = self._execute(f"SELECT {kind}, rows, cols, data FROM descriptors WHERE image_id = ?", image_id).fetchone()
        name = self._images[image_id].name
        if row is None or row[1] != len(self._keypoints.pixels(image_id)):
            raise ValueError(f"{self.path}: {name} lacks descriptors; leave out --ratio-from-descriptors")
        if row[0] != SIFT or row[2] != SIFT_LENGTH:
            raise ValueError(f"{self.path}: the descriptors of {name} are not SIFT; leave out --ratio-from-descriptors")
        what = f"descriptors of {name}: extract features again"
        return self._table(row[3], np.uint8, row[1], row[2], what)

    def _table(self, data: bytes | None, dtype: Any, rows: int, cols: int, what: str) -> NDArray[Any]:
        """A blob as an array (rows, cols)."""
        try:
            return _array(data or b"", dtype, rows, cols)
        except (TypeError, ValueError) as error:  # SQLite keeps text and numbers in a column of blobs, too
            raise ValueError(f"{self.path}: corrupt {what}") from error


def _connect(path: Path, lock_timeout_s: float) -> sqlite3.Connection:
    if not path.exists():
        raise FileNotFoundError(f"no such database: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file: give the path of COLMAP's database.db")
    for place in (path, path.parent):  # SQLite keeps its journal beside the database
        if not os.access(place, os.W_OK):
            raise PermissionError(f"{path} cannot be written to: {place} is read-only; copy the database elsewhere")
    with _explaining(path):
        return sqlite3.connect(path, timeout=lock_timeout_s, isolation_level=None)


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into such that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise OSError(f"{path} is locked: another program is writing to it; wait for it or end it") from error
        if "readonly" in str(error):
            raise PermissionError(f"{path} cannot be written to; copy the database elsewhere") from error
        raise OSError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"{path} is not a COLMAP database, or it is corrupt ({error}): restore it, or extract and match again"
        ) from error


def _split(key: int) -> tuple[int, int]:
    """The images of a pair, the smaller number first."""
    return divmod(key, MAX_IMAGES)


def _array(data: bytes, dtype: Any, *shape: int) -> NDArray[Any]:
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def _as_row(found: PairGeometry) -> dict[str, Any]:
    """Values of `COLUMNS` by name."""
    qvec = None if found.R is None else quaternion_from_rotation(found.R)
    matrices = {"F": found.F, "E": found.E, "H": found.H, "qvec": qvec, "tvec": found.t}
    return {
        "pair_id": found.key,
        "rows": len(found.matches),
        "cols": 2,
        "data": found.matches.astype("<u4").tobytes(),
        "config": int(found.config),
        **{name: None if matrix is None else _blob(matrix) for name, matrix in matrices.items()},
    }


def _blob(matrix: Array) -> bytes:
    return np.ascontiguousarray(matrix, "<f8").tobytes()

"""COLMAP's SQLite database: matches in, two-view geometries out. It needs no COLMAP.

A pair's number is ``2147483647 * id1 + id2`` with ``id1 < id2``, and everything in the database is in that order.
Keypoints and cameras share one pixel convention (the centre of the first pixel is at 0.5, 0.5), so neither is shifted.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import LARGEST
from caransac.focal_pooling import FocalEstimate, spread_choice
from caransac.geometry import Array, Floats, quaternion_from_rotation
from caransac.verification.colmap_cameras import ColmapCamera, read_cameras
from caransac.verification.keypoints import KeypointCache
from caransac.verification.records import (
    CalibrationPolicy,
    CameraFocal,
    Config,
    MatchIndices,
    PairGeometry,
    PairMatches,
    PairReport,
    UnknownCamera,
    check_calibrated,
)

MAX_IMAGES = 2147483647
LOCK_TIMEOUT_S = 10.0
POOLED_PAIRS = 60  # of a camera, at most: its focal length is then known to one per cent
MIN_POOLED_MATCHES = 30  # of a pair
CACHED_DESCRIPTORS = 64  # images whose descriptors are kept in memory, about 60 MB
SIFT, SIFT_LENGTH = 0, 128  # COLMAP's number of this descriptor, and its length
# Older databases lack the last ones.
COLUMNS = ("pair_id", "rows", "cols", "data", "config", "F", "E", "H", "qvec", "tvec")
TABLES = ("cameras", "images", "keypoints", "matches", "two_view_geometries")


@dataclass(frozen=True)
class _Image:
    """An image: its name and the number of its camera."""

    name: str
    camera_id: int


class ColmapDatabase:
    """A COLMAP database as a source of pairs, and the place their geometries go to."""

    def __init__(
        self,
        path: str | Path,
        *,
        calibrated: CalibrationPolicy = "auto",
        focal_deviation: float | None = None,
        write_focals: bool = False,
        overwrite: bool = False,
        ratio_from_descriptors: bool = False,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """Open a database and see what is to be done.

        Args:
            path: the database.
            calibrated: "auto" asks for a pose where both focal lengths are known, from a prior or pooled over the pairs
                of a camera, and for a fundamental matrix elsewhere; "always" trusts every camera, "never" none.
            focal_deviation: relative standard deviation of prior focal lengths with "auto", 0 to trust them exactly;
                None for that of EXIF.
            write_focals: write pooled focal lengths into the cameras, as priors, when all pairs are verified.
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
        self._keypoints = KeypointCache(self._read_keypoints, lambda image_id: self._camera(image_id).camera, self.path)
        self._descriptors = lru_cache(CACHED_DESCRIPTORS)(self._read_descriptors)
        self._connection = _connect(self.path, lock_timeout_s)
        try:
            with _explaining(self.path):
                self._columns = self._check_tables()
                columns = "camera_id, model, width, height, params, prior_focal_length"
                rows = self._execute(f"SELECT {columns} FROM cameras")
                self._cameras = read_cameras(rows, calibrated, focal_deviation, self.path)
                self._images = self._read_images()
                self.pending, self._kept = self._read_pairs(overwrite)
                self.unpooled = self._choose_unpooled()
        except BaseException:
            self.close()
            raise
        self._outdated: Sequence[int] = self.pending if overwrite else ()
        self._write_focals, self.pooled = write_focals, dict[int, FocalEstimate]()

    @property
    def kept(self) -> list[PairReport]:
        """What is known of the pairs that were verified before."""
        return [report.with_focals(*self.focals(key)) for key, report in self._kept.items()]

    def learn_focals(self, found: Mapping[int, FocalEstimate]) -> None:
        """Use pooled focal lengths from here on."""
        self.pooled = dict(found)
        self._cameras |= {number: self._cameras[number].pooled(estimate) for number, estimate in found.items()}

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """What is known of the focal lengths of a pair."""
        first, second = _split(key)
        return self._camera(first).focal, self._camera(second).focal

    def read(self, key: int) -> PairMatches:
        """A pair with its matches."""
        ids, names = _split(key), self._names(key)
        with _explaining(self.path):
            matches = self._read_matches(key)
            points1, points2, cameras = self._keypoints.matched(ids, names, matches)
            first_size, second_size = (self._camera(image_id).size for image_id in ids)
            same = len({self._images[image_id].camera_id for image_id in ids}) == 1
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
            image_sizes=None if first_size is None or second_size is None else (first_size, second_size),
            same_camera=True if same else None,
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
        """Write pooled focal lengths where that is wanted: now, so that an interrupted run pools the same again."""
        used = {number: self._cameras[number].camera for number in self.pooled} if self._write_focals else {}
        rows = [(_blob(np.array(camera.params)), number) for number, camera in used.items() if camera is not None]
        with _explaining(self.path), self._transaction():
            command = "UPDATE cameras SET params = ?, prior_focal_length = 1 WHERE camera_id = ?"
            self._connection.executemany(command, rows)

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

    def _camera(self, image_id: int) -> ColmapCamera:
        return self._cameras[self._images[image_id].camera_id]

    def _read_images(self) -> dict[int, _Image]:
        images = {}
        for image_id, name, camera_id in self._execute("SELECT image_id, name, camera_id FROM images"):
            if camera_id not in self._cameras:
                raise ValueError(f"{self.path}: image {name} has camera {camera_id}, which is not there")
            images[image_id] = _Image(name, camera_id)
        return images

    def _choose_unpooled(self) -> dict[int, UnknownCamera]:
        """Cameras to pool the focal lengths of, over pairs that may be verified already: every run pools the same."""
        matches: dict[int, dict[int, int]] = {}
        for key, rows in self._execute("SELECT pair_id, rows FROM matches WHERE rows >= ?", MIN_POOLED_MATCHES):
            first, second = (self._images.get(image_id) for image_id in _split(key))
            if first is None or second is None or first.camera_id != second.camera_id:
                continue
            if self._cameras[first.camera_id].awaits_pooling:
                matches.setdefault(first.camera_id, {})[key] = rows
        chosen = {}
        for number, pairs in sorted(matches.items()):
            keys, size = sorted(pairs), self._cameras[number].size
            assert size is not None
            used = spread_choice([pairs[key] for key in keys], POOLED_PAIRS)
            chosen[number] = UnknownCamera(size, [keys[i] for i in used])
        return chosen

    def _read_pairs(self, overwrite: bool) -> tuple[list[int], dict[int, PairReport]]:
        """Pairs to verify, and what is known of those that were verified before."""
        pending, kept = [], {}
        for key, matches, inliers, config in self._execute(
            "SELECT pair_id, matches.rows, two_view_geometries.rows, config FROM matches"
            " LEFT JOIN two_view_geometries USING (pair_id) WHERE matches.rows > 0 ORDER BY pair_id"
        ):
            # A row of an undefined geometry is a place that some tool made for the verification to come.
            if overwrite or config in (None, Config.UNDEFINED):
                pending.append(key)
            else:
                kept[key] = PairReport.of(self._names(key), matches, inliers, config)
        if not pending and not kept:
            raise ValueError(f"{self.path} has no matches: run feature matching first, for example exhaustive_matcher")
        return pending, kept

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

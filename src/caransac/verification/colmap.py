"""Read matches from COLMAP's SQLite database and write two-view geometries to it, without COLMAP.

The number of a pair is ``2147483647 * id1 + id2`` with ``id1 < id2``. Everything in the database follows that order.
Keypoints and cameras share one pixel convention (the centre of the first pixel is at 0.5, 0.5), so neither is shifted.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import LARGEST
from caransac._support.files import as_path
from caransac._support.sqlite_files import (
    LOCK_TIMEOUT_S,
    check_schema,
    connect,
    explaining,
    in_order,
    read_blob,
    transaction,
)
from caransac.api.camera_pooling import CameraEstimate, spread_choice
from caransac.geometry import Floats
from caransac.verification.colmap_cameras import MODELS, ColmapCamera, read_cameras
from caransac.verification.colmap_geometries import OUR_KEYS, GeometryTable, MatchedPair, blob
from caransac.verification.keypoints import KeypointCache
from caransac.verification.pair_records import (
    CalibrationPolicy,
    CameraFocal,
    MatchIndices,
    PairGeometry,
    PairMatches,
    PairReport,
    UnknownCamera,
    check_calibrated,
    naming_pair,
)
from caransac.verification.provenance import UNRECORDED

MAX_IMAGES = 2147483647
POOLED_PAIRS = 60  # maximum number of pairs per camera; they give the focal length to one per cent
MIN_POOLED_MATCHES = 30  # minimum number of matches of a pair
CACHED_DESCRIPTORS = 64  # number of images whose descriptors are kept in memory, about 60 MB
LONGEST_PARAMS = 256  # bytes; no camera has 32 parameters
SIFT, SIFT_LENGTH = 0, 128  # COLMAP's number for this descriptor, and its length
OTHERWISE = "is not a COLMAP database, or it is corrupt ({error}): restore it, or extract and match again"
# Tables that are read or written, with their keys. The table of descriptors is optional.
KEYS: Mapping[str, str | None] = {
    "cameras": "camera_id",
    "images": "image_id",
    "keypoints": "image_id",
    "descriptors": "image_id",
    "matches": "pair_id",
    "two_view_geometries": "pair_id",
}


@dataclass(frozen=True)
class _Image:
    """An image: its name and the number of its camera."""

    name: str
    camera_id: int


class ColmapDatabase:
    """A COLMAP database as a source of pairs and a store for their geometries."""

    def __init__(
        self,
        path: str | Path,
        *,
        calibrated: CalibrationPolicy = "auto",
        focal_deviation: float | None = None,
        write_focals: bool = False,
        overwrite: bool = False,
        ratio_from_descriptors: bool = False,
        settings: str = UNRECORDED,
        strict: bool = True,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
    ) -> None:
        """Open a database and find the pairs to verify.

        Args:
            path: path of the database.
            calibrated: "auto" estimates a pose if both focal lengths are known, from a prior or pooled over the pairs
                of a camera, and a fundamental matrix otherwise. "always" trusts every camera, "never" trusts no camera.
            focal_deviation: relative standard deviation of prior focal lengths with "auto"; 0 treats them as exact,
                None means the deviation of EXIF.
            write_focals: whether to write pooled focal lengths into the cameras, as priors, after all pairs are
                verified. Lenses with visible distortion become SIMPLE_RADIAL with k1.
            overwrite: whether to verify all pairs again. After an interrupted run with the same settings and this
                option, only the remaining pairs are verified. Each geometry is kept until the new one replaces it.
            ratio_from_descriptors: whether to compute ratios from the SIFT descriptors and use them as scores.
            settings: settings of the verification, see `describe_settings`. They are stored with the geometries.
            strict: whether to raise for the first unusable camera or pair. Otherwise only `read` raises, for each such
                pair.
            lock_timeout_s: seconds to wait while another program writes to the database.

        Raises:
            OSError: the database is missing, locked or cannot be written to.
            ValueError: the file is not a COLMAP database or has no pairs to verify. The message explains what to do.
        """
        check_calibrated(calibrated)
        self.path = as_path(path)
        self.batch_size = 8 if ratio_from_descriptors else 16  # smaller with descriptors, which are large to send
        self._descriptors_wanted = ratio_from_descriptors
        self._keypoints = KeypointCache(self._read_keypoints, lambda image_id: self._camera(image_id).camera, self.path)
        self._descriptors = lru_cache(CACHED_DESCRIPTORS)(self._read_descriptors)
        self._connection = open_database(self.path, lock_timeout_s=lock_timeout_s)
        self._strict = strict
        try:
            with explaining(self.path, OTHERWISE):
                self._check_tables()
                self._table_of_geometries = GeometryTable(self._connection, settings)
                params = f"CASE WHEN length(params) <= {LONGEST_PARAMS} THEN params END"
                columns = f"camera_id, model, width, height, {params}, prior_focal_length"
                rows = self._execute(f"SELECT {columns} FROM cameras ORDER BY camera_id")
                self._cameras = read_cameras(in_order(rows), calibrated, focal_deviation, self.path, strict=strict)
                self._images = self._read_images()
                self.pending, self._kept = self._choose_pairs(overwrite, settings)
                self.unpooled = self._choose_unpooled()
        except BaseException:
            self.close()
            raise
        self._to_replace: Sequence[int] = self.pending if overwrite else ()
        self._write_focals, self.pooled = write_focals, dict[int, CameraEstimate]()

    @property
    def kept(self) -> list[PairReport]:
        """Reports of the pairs that were verified before."""
        return [
            PairReport.of(self._names(pair.key), pair.matches, pair.inliers or 0, pair.config or 0).with_focals(
                *self.focals(pair.key)
            )
            for pair in self._kept
        ]

    @property
    def kept_settings(self) -> Mapping[str | None, int]:
        """Count the kept pairs by their settings; None stands for other software."""
        return Counter(pair.settings for pair in self._kept)

    def learn_focals(self, found: Mapping[int, CameraEstimate]) -> None:
        """Use pooled focal lengths from now on."""
        self.pooled = dict(found)
        self._cameras |= {number: self._cameras[number].pooled(estimate) for number, estimate in found.items()}

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """Return the known focal lengths of a pair."""
        first, second = split_pair(key)
        return self._camera(first).focal, self._camera(second).focal

    def read(self, key: int) -> PairMatches:
        """Read a pair with its matches."""
        ids, names = split_pair(key), self._names(key)
        with naming_pair(names), explaining(self.path, OTHERWISE):
            self._check_images(key)
            matches = self._read_matches(key)
            points1, points2, cameras = self._keypoints.matched(ids, names, matches)
            first_size, second_size = (self._camera(image_id).size for image_id in ids)
            same = len({self._image(image_id).camera_id for image_id in ids}) == 1
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
        with explaining(self.path, OTHERWISE), transaction(self._connection):
            if self._to_replace:
                self._table_of_geometries.mark_outdated(self._to_replace)
            self._table_of_geometries.write(found)
        self._to_replace = ()

    def finish(self) -> None:
        """Write pooled cameras if requested. This comes last: an interrupted run can pool the same pairs again."""
        used = {number: self._cameras[number].camera for number in self.pooled} if self._write_focals else {}
        rows = [
            (MODELS.index(camera.model), blob(np.array(camera.params)), number)
            for number, camera in used.items()
            if camera is not None
        ]
        with explaining(self.path, OTHERWISE), transaction(self._connection):
            command = "UPDATE cameras SET model = ?, params = ?, prior_focal_length = 1 WHERE camera_id = ?"
            self._connection.executemany(command, rows)
            self._table_of_geometries.forget_outdated()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _execute(self, command: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(command, values)

    def _check_tables(self) -> None:
        """Raise if this is not a COLMAP database that is safe to read and writable."""
        there = {name for (name,) in self._execute("SELECT name FROM sqlite_master")}
        wanted = [name for name in KEYS if self._descriptors_wanted or name != "descriptors"]
        if missing := [name for name in wanted if name not in there]:
            raise ValueError(
                f"{self.path} is not a COLMAP database, or a very old one: it has no table {missing[0]!r}; make "
                "one with COLMAP's feature extraction and matching"
            )
        check_schema(self._connection, {**KEYS, **OUR_KEYS}, self.path)
        with transaction(self._connection):  # detect a locked or read-only database now, not after the first batch
            pass

    def _image(self, image_id: int) -> _Image:
        return self._images.get(image_id) or _Image(f"image {image_id}", -1)

    def _camera(self, image_id: int) -> ColmapCamera:
        image = self._image(image_id)
        if image_id not in self._images:
            return ColmapCamera(problem=f"{image.name} is not there: match again")
        problem = f"image {image.name} has camera {image.camera_id}, which is not there: extract features again"
        return self._cameras.get(image.camera_id) or ColmapCamera(problem=problem)

    def _names(self, key: int) -> tuple[str, str]:
        first, second = split_pair(key)
        return self._image(first).name, self._image(second).name

    def _check_images(self, key: int) -> None:
        """Raise if the images of a pair are unusable."""
        for image_id in split_pair(key):
            if problem := self._camera(image_id).problem:
                raise ValueError(f"{self.path}: {problem}")

    def _read_images(self) -> dict[int, _Image]:
        rows = self._execute("SELECT image_id, name, camera_id FROM images ORDER BY image_id")
        return {image_id: _Image(str(name), camera_id) for image_id, name, camera_id in in_order(rows)}

    def _choose_unpooled(self) -> dict[int, UnknownCamera]:
        """Choose cameras and pairs for pooling. Verified pairs are included, so that every run pools the same pairs."""
        matches: dict[int, dict[int, int]] = {}
        counted = "SELECT pair_id, rows FROM matches WHERE typeof(rows) = 'integer' AND rows >= ? ORDER BY pair_id"
        for key, rows in in_order(self._execute(counted, MIN_POOLED_MATCHES)):
            first, second = (self._images.get(image_id) for image_id in split_pair(key))
            if first is None or second is None or first.camera_id != second.camera_id:
                continue
            if first.camera_id in self._cameras and self._cameras[first.camera_id].awaits_pooling:
                matches.setdefault(first.camera_id, {})[key] = rows
        chosen = {}
        for number, pairs in sorted(matches.items()):
            keys, size = sorted(pairs), self._cameras[number].size
            assert size is not None
            used = spread_choice([pairs[key] for key in keys], POOLED_PAIRS)
            chosen[number] = UnknownCamera(size, [keys[i] for i in used])
        return chosen

    def _choose_pairs(self, overwrite: bool, settings: str) -> tuple[list[int], list[MatchedPair]]:
        """Return the pairs to verify, and those that were verified before."""
        pairs = list(self._table_of_geometries.read_pairs())
        if not pairs:
            raise ValueError(f"{self.path} has no matches: run feature matching first, for example exhaustive_matcher")
        if self._strict:
            for pair in pairs:
                self._check_images(pair.key)
        # Outdated pairs are left from an interrupted run with `overwrite`. This run continues it.
        all_again = overwrite and not any(pair.outdated for pair in pairs)
        pending, kept = list[int](), list[MatchedPair]()
        for pair in pairs:
            if all_again or pair.outdated or not pair.is_verified or (overwrite and pair.settings != settings):
                pending.append(pair.key)
            else:
                kept.append(pair)
        return pending, kept

    def _read_matches(self, key: int) -> MatchIndices:
        found = self._read_table("matches", key, np.uint32, f"matches of pair {key}: match again")
        if found.shape[1] != 2:
            raise ValueError(
                f"{self.path}: matches of pair {key} have {found.shape[1]} columns instead of 2: match again"
            )
        return found

    def _read_keypoints(self, image_id: int) -> Floats:
        """Read the pixels (n, 2) of an image's keypoints."""
        what = f"keypoints of {self._images[image_id].name}: extract features again"
        points: Floats = np.ascontiguousarray(self._read_table("keypoints", image_id, np.float32, what)[:, :2])
        if points.shape[1] != 2:
            raise ValueError(f"{self.path}: corrupt {what}")
        if not np.all(np.abs(points) < LARGEST):
            raise ValueError(f"{self.path}: NaN, infinity or vast numbers in the {what}")
        return points

    def _read_descriptors(self, image_id: int) -> NDArray[np.uint8]:
        """Read the SIFT descriptors (n, 128) of an image."""
        columns = [name for _, name, *_ in self._execute("PRAGMA table_info(descriptors)")]
        kind = "type" if "type" in columns else str(SIFT)
        row = self._execute(f"SELECT {kind}, rows, cols FROM descriptors WHERE image_id = ?", image_id).fetchone()
        name = self._images[image_id].name
        if row is None or row[1] != len(self._keypoints.pixels(image_id)):
            raise ValueError(f"{self.path}: {name} lacks descriptors; leave out --ratio-from-descriptors")
        if row[0] != SIFT or row[2] != SIFT_LENGTH:
            raise ValueError(f"{self.path}: the descriptors of {name} are not SIFT; leave out --ratio-from-descriptors")
        return self._read_table("descriptors", image_id, np.uint8, f"descriptors of {name}: extract features again")

    def _read_table(self, table: str, number: int, dtype: Any, what: str) -> NDArray[Any]:
        """Read the array (rows, cols) in a row of a table; (0, 2) if there is no such row."""
        try:
            found = read_blob(self._connection, table, KEYS[table] or "", number, np.dtype(dtype).itemsize)
        except ValueError as error:  # SQLite also accepts text and numbers in a column of blobs
            raise ValueError(f"{self.path}: corrupt {what} ({error})") from error
        rows, cols, data = found or (0, 2, b"")
        return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False).reshape(rows, cols)


def open_database(path: Path, *, writable: bool = True, lock_timeout_s: float = LOCK_TIMEOUT_S) -> sqlite3.Connection:
    """Open a connection to an existing database. Raise an OSError or a ValueError that explains what is wrong."""
    if not path.exists():
        raise FileNotFoundError(f"no such database: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file: give the path of COLMAP's database.db")
    for place in (path, path.parent) if writable else ():  # SQLite writes its journal beside the database
        if not os.access(place, os.W_OK):
            raise PermissionError(f"{path} cannot be written to: {place} is read-only; copy the database elsewhere")
    with explaining(path, OTHERWISE):
        return connect(path, lock_timeout_s)


def split_pair(key: int) -> tuple[int, int]:
    """Return the two images of a pair, the smaller number first."""
    return divmod(key, MAX_IMAGES)

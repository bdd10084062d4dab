"""Keypoints and verified matches of a COLMAP database.

The refined keypoints go into a copy of the database, or into the database itself. The first rows of keypoints and
matches are then kept in tables of our own, for `undo`. The geometries are marked as outdated: the next verification
estimates them again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

import caransac
from caransac._support import interrupts
from caransac._support.files import as_path, replacing
from caransac._support.sqlite_files import check_schema, connect, explaining, in_order, read_blob, transaction
from caransac._support.untrusted import parse_json
from caransac.geometry import Floats
from caransac.keypoint_refinement.collection import KeypointSummary, RefinedKeypoints
from caransac.keypoint_refinement.keypoint_patches import PhotographFile
from caransac.keypoint_refinement.photograph_files import check_folder, photograph_path
from caransac.verification.colmap import KEYS, OTHERWISE, open_database, split_pair
from caransac.verification.colmap_geometries import OUR_KEYS, GeometryTable
from caransac.verification.keypoints import CACHED_IMAGES
from caransac.verification.pair_records import Config, ImageSize, MatchIndices
from caransac.verification.provenance import UNRECORDED

PAGES_PER_STEP = 4096  # of the database, copied between two checks for Ctrl-C
REFINED = "CREATE TABLE caransac_refined (identity TEXT NOT NULL, summary TEXT NOT NULL)"
ORIGINALS = (  # the rows before the refinement
    "CREATE TABLE caransac_original_keypoints (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB)",
    "CREATE TABLE caransac_original_matches (pair_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB)",
)
REFINED_KEYS = {
    "caransac_refined": None,
    "caransac_original_keypoints": "image_id",
    "caransac_original_matches": "pair_id",
}
VERIFIED = f"rows > 0 AND config NOT IN ({Config.UNDEFINED:d}, {Config.DEGENERATE:d})"


class ColmapKeypoints:
    """The keypoints and verified matches of a COLMAP database."""

    def __init__(
        self, path: str | Path, images: str | Path, out: str | Path | None = None, *, keep_matches: bool = False
    ) -> None:
        """Open a database.

        Args:
            path: path of the database.
            images: folder of the photographs.
            out: path of the copy that gets the refined keypoints; None to write them into the database itself.
            keep_matches: whether to keep the matches whose patches do not agree.

        Raises:
            OSError: the database or the folder is missing, or the database is locked or cannot be written to.
            ValueError: the file is not a COLMAP database, or has no verified pairs.
        """
        self.path, self.target = as_path(path), as_path(path if out is None else out)
        self._folder, self._keep_matches = check_folder(images), keep_matches
        self._connection = open_database(self.path, writable=out is None)
        try:
            with explaining(self.path, OTHERWISE):
                check_schema(self._connection, {**KEYS, **OUR_KEYS, **REFINED_KEYS}, self.path)
                self._read()
        except BaseException:
            self.close()
            raise
        self.keypoints = lru_cache(CACHED_IMAGES)(self._read_keypoints)

    def _read(self) -> None:
        execute = self._connection.execute
        sizes = dict[int, ImageSize]()
        for camera, width, height in in_order(execute("SELECT camera_id, width, height FROM cameras ORDER BY 1")):
            if isinstance(width, int) and isinstance(height, int) and min(width, height) > 0:
                sizes[camera] = width, height
        rows = in_order(execute("SELECT image_id, name, camera_id FROM images ORDER BY image_id"))
        self._names = {image: (str(name), sizes.get(camera)) for image, name, camera in rows}
        self._counts = dict(in_order(execute("SELECT image_id, rows FROM keypoints ORDER BY image_id")))
        found = list(in_order(execute(f"SELECT pair_id, rows FROM two_view_geometries WHERE {VERIFIED} ORDER BY 1")))
        self.pairs: Sequence[int] = [
            key for key, _ in found if all(each in self._names and each in self._counts for each in split_pair(key))
        ]
        self.images: Sequence[int] = sorted({image for key in self.pairs for image in split_pair(key)})
        if not self.pairs:
            raise ValueError(f"{self.path} has no verified pairs: run caransac verify first")
        described = json.dumps([caransac.__version__, self._keep_matches, self._names, self._counts, found])
        self.identity = blake2b(described.encode(), digest_size=16).hexdigest()

    def images_of(self, key: int) -> tuple[int, int]:
        """Return the images of a pair."""
        return split_pair(key)

    def name(self, image: int) -> str:
        """Return the name of an image."""
        return self._names[image][0]

    def photograph(self, image: int) -> PhotographFile:
        """Return the file of an image. COLMAP ignores EXIF orientations."""
        name, size = self._names[image]
        return PhotographFile(photograph_path(self._folder, name), size, upright=False)

    def num_keypoints(self, image: int) -> int:
        """Return the number of keypoints of an image."""
        return int(self._counts[image])

    def matches(self, key: int) -> MatchIndices:
        """Return the verified matches (m, 2) of a pair."""
        what = f"geometry of {' and '.join(map(self.name, split_pair(key)))}: verify again"
        matches = self._read_array("two_view_geometries", "pair_id", key, "<u4", what).astype(np.uint32, copy=False)
        counts = [self._counts[image] for image in split_pair(key)]
        if matches.shape[1] != 2 or np.any(matches >= counts):
            raise ValueError(f"{self.path}: corrupt {what}")
        return matches

    def _read_keypoints(self, image: int) -> Floats:
        """Read the keypoints (n, 2) of an image. In COLMAP's pixels, the top-left one has its centre at (0.5, 0.5)."""
        rows = self._keypoint_rows(self._connection, image)
        return np.asarray(rows[:, :2] - 0.5, np.float32)

    def _keypoint_rows(self, connection: sqlite3.Connection, image: int) -> Floats:
        what = f"keypoints of {self.name(image)}: extract features again"
        rows = self._read_array("keypoints", "image_id", image, "<f4", what, connection)
        if rows.shape[1] < 2 or not np.isfinite(rows[:, :2]).all():
            raise ValueError(f"{self.path}: corrupt {what}")
        return rows

    def _read_array(
        self, table: str, key: str, number: int, dtype: str, what: str, connection: sqlite3.Connection | None = None
    ) -> np.ndarray:
        with explaining(self.path, OTHERWISE):
            try:
                found = read_blob(connection or self._connection, table, key, number, np.dtype(dtype).itemsize)
            except ValueError as error:
                raise ValueError(f"{self.path}: corrupt {what} ({error})") from error
        rows, cols, data = found or (0, 2, b"")
        return np.frombuffer(data, dtype).reshape(rows, cols)

    def write(self, refined: RefinedKeypoints, summary: KeypointSummary) -> None:
        """Write refined keypoints and matches in one transaction, or into a copy that appears when it is complete."""
        if self.target == self.path:
            with explaining(self.path, OTHERWISE), transaction(self._connection):
                for command in ORIGINALS:
                    self._connection.execute(command)
                self._apply(self._connection, refined, summary, keep_originals=True)
            return
        with replacing(self.target) as temporary, explaining(self.target, OTHERWISE):
            copy = connect(temporary)
            try:
                self._connection.backup(copy, pages=PAGES_PER_STEP, progress=lambda *_: interrupts.check())
                copy.execute("PRAGMA journal_mode = OFF")  # nobody sees the copy before it is complete
                with transaction(copy):
                    self._apply(copy, refined, summary, keep_originals=False)
            finally:
                copy.close()

    def _apply(
        self,
        connection: sqlite3.Connection,
        refined: RefinedKeypoints,
        summary: KeypointSummary,
        *,
        keep_originals: bool,
    ) -> None:
        connection.execute(REFINED)
        connection.execute("INSERT INTO caransac_refined VALUES (?, ?)", (self.identity, json.dumps(asdict(summary))))
        for image in self.images:
            interrupts.check()
            shifts = refined.shifts(image)
            if shifts.any():
                if keep_originals:
                    _keep(connection, "keypoints", "image_id", image)
                rows = self._keypoint_rows(connection, image).copy()
                rows[:, :2] += shifts
                connection.execute("UPDATE keypoints SET data = ? WHERE image_id = ?", (rows.tobytes(), image))
        for key, matches in () if self._keep_matches else self._remaining(refined):
            if keep_originals:
                _keep(connection, "matches", "pair_id", key)
            values = (key, len(matches), matches.astype("<u4").tobytes())
            connection.execute("INSERT OR REPLACE INTO matches (pair_id, rows, cols, data) VALUES (?, ?, 2, ?)", values)
            if not len(matches):  # a verification passes over pairs without matches
                columns = f"rows = 0, data = x'', config = {Config.DEGENERATE:d}"
                connection.execute(f"UPDATE two_view_geometries SET {columns} WHERE pair_id = ?", (key,))
        GeometryTable(connection, UNRECORDED).mark_outdated(self.pairs)

    def _remaining(self, refined: RefinedKeypoints) -> Iterator[tuple[int, MatchIndices]]:
        """Yield the pairs whose photographs were compared, with the matches that agree."""
        for key in self.pairs:
            interrupts.check()
            if (agreeing := refined.agreeing(key)) is not None:
                yield key, self.matches(key)[agreeing]

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _keep(connection: sqlite3.Connection, table: str, key: str, number: int) -> None:
    """Copy a row into the table of originals."""
    chosen = f"SELECT {key}, rows, cols, data FROM {table} WHERE {key} = ?"
    connection.execute(f"INSERT INTO caransac_original_{table} {chosen}", (number,))


def read_refinement(path: Path) -> tuple[str, KeypointSummary] | None:
    """Return the identity and the summary of the refinement of a database; None if it has none."""
    connection = open_database(path, writable=False)
    try:
        with explaining(path, OTHERWISE):
            check_schema(connection, {**KEYS, **OUR_KEYS, **REFINED_KEYS}, path)
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'caransac_refined'").fetchone() is None:
                return None
            identity, summary = connection.execute("SELECT identity, summary FROM caransac_refined").fetchone()
            return str(identity), KeypointSummary(**parse_json(summary))
    finally:
        connection.close()


def undo(path: Path) -> None:
    """Put the keypoints and matches back that a refinement in place has changed. Mark all geometries as outdated."""
    connection = open_database(path, writable=True)
    try:
        with explaining(path, OTHERWISE):
            check_schema(connection, {**KEYS, **OUR_KEYS, **REFINED_KEYS}, path)
            there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'caransac_original_keypoints'")
            if there.fetchone() is None:
                raise ValueError(f"{path} was not refined in place: there is nothing to undo")
            with transaction(connection):
                for table, key in (("keypoints", "image_id"), ("matches", "pair_id")):
                    rows = connection.execute(f"SELECT rows, cols, data, {key} FROM caransac_original_{table}")
                    connection.executemany(f"UPDATE {table} SET rows = ?, cols = ?, data = ? WHERE {key} = ?", rows)
                for table in REFINED_KEYS:
                    connection.execute(f"DROP TABLE {table}")
                keys = [key for (key,) in connection.execute("SELECT pair_id FROM two_view_geometries")]
                GeometryTable(connection, UNRECORDED).mark_outdated(keys)
    finally:
        connection.close()

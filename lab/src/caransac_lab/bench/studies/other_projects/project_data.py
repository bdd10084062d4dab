"""Data for the scripts of other projects, and rows of their figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from caransac.geometry import Array, pose_error_deg
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG, auc

BUILDINGS = ("herz_jesus_p25", "entry_p10", "llff_fern", "llff_flower")
DRIVE, FIELDS = ("kitti_2",), ("policko",)
PLANES = ("bark", "bikes", "wall")
MAX_RATIO = 0.85
PHOTO_SIZE = 1024, 576  # pixels, size of the reduced photographs
AUC, INLIERS = "AUC@5", "inliers"

Row = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """Locations of the data, and the number of pairs per scene."""

    pairs: Path | None
    homographies: Path | None
    photos: Path | None
    count: int

    def read_pairs(self, scenes: tuple[str, ...], count: int | None = None) -> list[Pair]:
        """Read the pairs of scenes, with only the matches of a good ratio."""
        if self.pairs is None:
            raise LookupError("no --pairs")
        found = []
        for scene in scenes:
            for pair in read_ransac_tutorial(self.pairs, scenes=[scene], max_pairs=count or self.count):
                found.append(pair.take(pair.scores < MAX_RATIO))
        return found

    def read_planes(self) -> Iterator[tuple[Array, Array, Array, tuple[float, float]]]:
        """Yield points of both images, the homography and the size of image 1 for every planar pair."""
        if self.homographies is None:
            raise LookupError("no --homographies")
        for scene in PLANES:
            names = ("matches", "match_conf", "H", "sizes")
            with contextlib.ExitStack() as stack:
                file = {
                    name: stack.enter_context(h5py.File(self.homographies / scene / f"{name}.h5")) for name in names
                }
                for key in sorted(file["matches"])[: self.count]:
                    good = file["match_conf"][key][:].ravel() < MAX_RATIO
                    matches = file["matches"][key][:][good].astype(np.float32)
                    width, height = np.ravel(file["sizes"][key][:])[:2]
                    yield matches[:, :2], matches[:, 2:4], file["H"][key][:], (float(width), float(height))

    def read_photos(self) -> list[Array]:
        """Read the reduced photographs."""
        if self.photos is None:
            raise LookupError("no --photos")
        import cv2

        paths = sorted(self.photos.glob("*.JPG"))[: self.count + 1]
        return [cv2.resize(cv2.imread(str(path)), PHOTO_SIZE, interpolation=cv2.INTER_AREA) for path in paths]


def pose_row(script: str, library: str, on: str, errors: list[float]) -> Row:
    """Return a row of pose errors in degrees."""
    return {
        "script": script,
        "library": library,
        "on": on,
        "pairs": len(errors),
        "figure": AUC,
        "value": auc(errors, 5),
    }


def pose_error(pair: Pair, R: Array, t: Array) -> float:
    """Return the error of a pose in degrees. An identity without translation counts as a failure."""
    t = np.ravel(t)
    return pose_error_deg(R, t, pair.R, pair.t) if np.any(t) else FAILURE_DEG


def corner_error(H: Array | None, truth: Array, size: tuple[float, float]) -> float:
    """Return the mean error in pixels of the corners of the first image."""
    if H is None:
        return FAILURE_DEG
    width, height = size
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1.0]])
    mapped = [each[:, :2] / each[:, 2:] for each in (corners @ truth.T, corners @ np.asarray(H, float).T)]
    return float(np.linalg.norm(mapped[0] - mapped[1], axis=1).mean())

"""hloc's HDF5 files: keypoints and matches in, matches that are inliers out.

hloc puts the centre of the first pixel at (0, 0), COLMAP at (0.5, 0.5): intrinsics in COLMAP's terms are moved to
hloc's pixels here, once, and everything after that is in hloc's pixels.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from caransac._support.arrays import as_points, as_reals
from caransac._support.files import check_writable, open_h5, read_text, replacing
from caransac.camera import PARAMETERS, Camera
from caransac.focal_pooling import FocalEstimate
from caransac.geometry import Floats
from caransac.verification.keypoints import KeypointCache
from caransac.verification.records import (
    SHAPES,
    CalibrationPolicy,
    CameraFocal,
    Config,
    ImageSize,
    MatchIndices,
    PairGeometry,
    PairMatches,
    PairReport,
    UnknownCamera,
    check_calibrated,
)

CHECKPOINT_S = 60.0  # what a killed run may lose
MOST_KEYPOINTS = 2**32 - 1  # of an image: indices are kept in 32 bits


@dataclass(frozen=True)
class _Pair:
    """Two images in the order of their matches, and the group that holds these."""

    image1: str
    image2: str
    group: str


class HlocFiles:
    """hloc's files as a source of pairs, and a matches file that their geometries go to.

    The output has hloc's layout: a group for every pair with `matches0` and `matching_scores0`, in which outliers are
    unmatched, and beside them what hloc does not read: the matrices that are known of F, E, H, R and t, and the
    attributes config, num_matches, confidence and ms.
    """

    batch_size = 16

    def __init__(
        self,
        features: str | Path,
        matches: str | Path,
        pairs: str | Path,
        out: str | Path,
        *,
        cameras: str | Path | None = None,
        calibrated: CalibrationPolicy = "auto",
        focal_deviation: float = 0.0,
        overwrite: bool = False,
    ) -> None:
        """Open the files and see what is to be done.

        Args:
            features: keypoints, a group for every image.
            matches: matches, a group for every pair.
            pairs: two names per line.
            out: where to write. Pairs that are in it already, or in what an interrupted run left beside it, are kept.
            cameras: intrinsics in COLMAP's terms, ``name MODEL width height params...`` per line; None for none.
            calibrated: "never" ignores the cameras, "always" wants one for every image.
            focal_deviation: relative standard deviation of the focal lengths of the cameras; 0 for exact.
            overwrite: verify all pairs again.

        Raises:
            OSError: a file is missing, or not HDF5.
            ValueError: a file's content is not as it should be; the message says what to do.
        """
        check_calibrated(calibrated)
        self.out, self._partial = Path(out), Path(f"{out}.partial")
        _check_output(self.out, features, matches, pairs, cameras)
        self._cameras = read_cameras(Path(cameras)) if cameras is not None and calibrated != "never" else {}
        self._cameras = {
            name: camera if camera.is_fisheye else replace(camera, focal_deviation=focal_deviation)
            for name, camera in self._cameras.items()
        }
        self._sizes_wanted = calibrated != "never"
        names = _read_pairs(Path(pairs))
        if calibrated == "always" and (without := sorted({n for pair in names for n in pair} - set(self._cameras))):
            raise ValueError(f"--calibrated always, but --cameras has no line for {without[0]}: add it, or use auto")
        with ExitStack() as opened:  # closed at once if something is wrong, else by `close`
            self._features = opened.enter_context(open_h5(Path(features)))
            self._matches = opened.enter_context(open_h5(Path(matches)))
            self._pairs = [self._find(*pair) for pair in names]
            folder = opened.enter_context(TemporaryDirectory(prefix="caransac-", ignore_cleanup_errors=True))
            self._work = Path(folder) / "verified.h5"
            self._file = open_h5(self._work, "w")
            opened.callback(lambda: self._file.close())  # whichever it is by then
            kept = {} if overwrite else self._take_over()
            self._opened = opened.pop_all()
        self._keypoints = KeypointCache(self._read_keypoints, self._cameras.get, matches)
        self.kept: Sequence[PairReport] = list(kept.values())
        self.unpooled: Mapping[int, UnknownCamera] = {}  # nothing tells which images are of one camera
        self.pooled: Mapping[int, FocalEstimate] = {}
        self.pending: Sequence[int] = [i for i, pair in enumerate(self._pairs) if pair.group not in kept]
        self._saved = time.monotonic()

    def learn_focals(self, found: Mapping[int, FocalEstimate]) -> None:
        """There is nothing to learn: no focal length is pooled."""

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """What is known of the focal lengths of a pair."""
        pair = self._pairs[key]
        return self._focal(pair.image1), self._focal(pair.image2)

    def _focal(self, name: str) -> CameraFocal:
        camera = self._cameras.get(name)
        if camera is None:
            return CameraFocal(None, None, "unknown")
        return CameraFocal(camera.mean_focal, camera.focal_deviation, "given")

    def read(self, key: int) -> PairMatches:
        """A pair with its matches."""
        pair = self._pairs[key]
        names = pair.image1, pair.image2
        matches, scores = self._read_matches(pair)
        points1, points2, cameras = self._keypoints.matched(names, names, matches)
        size1, size2 = self._image_size(pair.image1), self._image_size(pair.image2)
        return PairMatches(
            key=key,
            image1=pair.image1,
            image2=pair.image2,
            matches=matches,
            points1=points1,
            points2=points2,
            cameras=cameras,
            image_sizes=None if size1 is None or size2 is None else (size1, size2),
            scores=scores,
            score_kind="confidence",
        )

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Keep geometries; once a minute they are saved beside the output, for a run that is killed."""
        for geometry in found:
            self._write_group(geometry)
        if time.monotonic() - self._saved > CHECKPOINT_S:
            self._save(self._partial)
            self._saved = time.monotonic()

    def finish(self) -> None:
        """Put the output in its place."""
        self._save(self.out)
        self._partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files; what is done of an unfinished run is saved beside the output."""
        if self.pending and len(self._file) and not self._is_complete():
            self._save(self._partial)
        self._opened.close()

    def _is_complete(self) -> bool:
        return all(pair.group in self._file for pair in self._pairs)

    def _save(self, path: Path) -> None:
        """Put a copy of what is done at a path, whole or not at all."""
        self._file.close()
        with replacing(path) as temporary:
            shutil.copyfile(self._work, temporary)
        self._file = open_h5(self._work, "a")

    def _write_group(self, found: PairGeometry) -> None:
        source = self._matches[self._pairs[found.key].group]
        group = self._file.create_group(self._pairs[found.key].group)
        partners = np.full_like(source["matches0"][()], -1)
        partners[found.matches[:, 0]] = found.matches[:, 1]
        group.create_dataset("matches0", data=partners)
        if "matching_scores0" in source:
            scores = source["matching_scores0"][()]
            scores[partners < 0] = 0
            group.create_dataset("matching_scores0", data=scores)
        for name in SHAPES:
            if (matrix := getattr(found, name)) is not None:
                group.create_dataset(name, data=matrix)
        group.attrs["config"] = found.config.name.lower()
        group.attrs["num_matches"] = found.num_matches
        if found.confidence is not None:
            group.attrs["confidence"] = found.confidence
        group.attrs["ms"] = found.elapsed_ms

    def _take_over(self) -> dict[str, PairReport]:
        """Copy the pairs that an earlier run verified; returns their reports by group."""
        before = self._partial if self._partial.exists() else self.out  # the former has all that it kept of the latter
        if not before.exists():
            return {}
        reports: dict[str, PairReport] = {}
        with open_h5(before) as file:
            for pair in self._pairs:
                if pair.group in file:
                    try:
                        report = _report_of(pair, file[pair.group])
                        reports[pair.group] = report.with_focals(self._focal(pair.image1), self._focal(pair.image2))
                    except (KeyError, TypeError, ValueError) as error:
                        raise ValueError(
                            f"--out: {before} holds {pair.group}, but not from caransac verify: choose another place, "
                            "or replace it by --overwrite"
                        ) from error
                    file.copy(pair.group, self._file.require_group(pair.group.partition("/")[0]))
        return reports

    def _find(self, image1: str, image2: str) -> _Pair:
        """The group of a pair's matches; like hloc, it may hold the pair the other way round, and then we do, too."""
        for first, second in ((image1, image2), (image2, image1)):
            group = "/".join(name.replace("/", "-") for name in (first, second))
            if group in self._matches:
                return _Pair(first, second, group)
        raise ValueError(
            f"{self._matches.filename}: no matches of {image1} and {image2}: match this pair first, or take it out of "
            "--pairs"
        )

    def _read_matches(self, pair: _Pair) -> tuple[MatchIndices, Floats | None]:
        """Indices (n, 2) of a pair's matches, and their scores (n,) if there are any."""
        try:
            return _as_matches(self._matches[pair.group])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._matches.filename}: corrupt matches of {pair.image1} and {pair.image2}: match this pair again "
                f"({error})"
            ) from error

    def _image_size(self, name: str) -> ImageSize | None:
        """Size of an image, where hloc has written it and it is to be used."""
        size = np.asarray(self._features[name].get("image_size", ()))
        if not self._sizes_wanted or size.shape != (2,) or size.dtype.kind not in "iuf" or not np.all(size >= 1):
            return None
        return int(size[0]), int(size[1])

    def _read_keypoints(self, name: str) -> Floats:
        """Keypoints (n, 2) of an image, in hloc's pixels."""
        if name not in self._features or "keypoints" not in self._features[name]:
            raise ValueError(f"{self._features.filename}: no keypoints of {name}: extract its features first")
        try:
            keypoints = as_reals(self._features[name]["keypoints"][()], "keypoints")
            return np.ascontiguousarray(as_points(keypoints[:, :2], "keypoints"), np.float32)
        except (IndexError, ValueError) as error:
            raise ValueError(
                f"{self._features.filename}: corrupt keypoints of {name}: extract its features again ({error})"
            ) from error


def _check_output(out: Path, *inputs: str | Path | None) -> None:
    """Raise now what writing the output would raise at the end, and a ValueError if it would replace an input."""
    if out.resolve() in [Path(path).resolve() for path in inputs if path is not None]:
        raise ValueError(f"out: {out} is an input; choose another place")
    check_writable(out)


def _as_matches(group: Any) -> tuple[MatchIndices, Floats | None]:
    """Indices (n, 2) of the matches in a pair's group, and their scores (n,) if there are any."""
    partners = np.asarray(group["matches0"])
    if partners.ndim != 1 or partners.dtype.kind not in "iu" or np.any(partners > MOST_KEYPOINTS):
        raise ValueError(f"matches0 must be (n,) indices, got {partners.shape} {partners.dtype}")
    matched = np.flatnonzero(partners >= 0)
    matches = np.stack([matched, partners[matched]], axis=1).astype(np.uint32)
    if "matching_scores0" not in group:
        return matches, None
    scores = np.asarray(group["matching_scores0"])
    if scores.shape != partners.shape:
        raise ValueError(f"matching_scores0 must have shape {partners.shape}, got {scores.shape}")
    return matches, as_reals(scores[matched], "matching_scores0").astype(np.float32)


def read_cameras(path: Path) -> dict[str, Camera]:
    """Cameras by image name, moved to hloc's pixels, of lines ``name MODEL width height params...`` in COLMAP's."""
    if not path.is_file():
        raise FileNotFoundError(f"--cameras: no such file: {path}")
    cameras = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, model, width, height, *params = words
            camera = Camera(model, tuple(map(float, params)), int(width), int(height))
        except ValueError as error:
            raise ValueError(
                f"{path}: line {number} is not 'name MODEL width height params...' with a model of "
                f"{', '.join(PARAMETERS)}: {error}"
            ) from error
        shifts = [-0.5 if parameter in ("cx", "cy") else 0.0 for parameter in PARAMETERS[model]]
        cameras[name] = replace(camera, params=tuple(np.add(camera.params, shifts)))
    return cameras


def _report_of(pair: _Pair, group: Any) -> PairReport:
    """The report of a pair that an earlier run verified."""
    attributes = group.attrs
    config = Config[str(attributes["config"]).upper()]
    confidence = float(attributes["confidence"]) if "confidence" in attributes else None
    inliers = int((np.asarray(group["matches0"]) >= 0).sum())
    names = pair.image1, pair.image2
    return PairReport.of(names, int(attributes["num_matches"]), inliers, config, confidence, float(attributes["ms"]))


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    """The pairs of a list, each once."""
    if not path.is_file():
        raise FileNotFoundError(f"--pairs: no such file: {path}")
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split()
        if len(words) not in (0, 2):
            raise ValueError(f"{path}: line {number} has {len(words)} words, not the names of two images")
        if words and (words[1], words[0]) not in pairs:
            pairs[words[0], words[1]] = None
    if not pairs:
        raise ValueError(f"{path} has no pairs: two image names per line")
    return list(pairs)

"""Read keypoints and matches from hloc's HDF5 files, and write the matches that are inliers.

hloc puts the centre of the first pixel at (0, 0), COLMAP at (0.5, 0.5). Intrinsics in COLMAP's convention are converted
to hloc's pixels once, when they are read. All later steps use hloc's pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from caransac._support.arrays import as_points, as_reals, as_size
from caransac._support.files import as_path, check_no_input, check_writable
from caransac._support.untrusted import read_text
from caransac._support.untrusted_h5 import UntrustedGroup, read_h5
from caransac.api.camera_pooling import CameraEstimate
from caransac.camera import PARAMETERS, Camera
from caransac.geometry import Floats
from caransac.verification.hloc_output import HlocOutput
from caransac.verification.keypoints import KeypointCache
from caransac.verification.pair_records import (
    CalibrationPolicy,
    CameraFocal,
    ImageSize,
    MatchIndices,
    PairGeometry,
    PairMatches,
    PairReport,
    UnknownCamera,
    check_calibrated,
    naming_pair,
)
from caransac.verification.provenance import UNRECORDED

MOST_KEYPOINTS = 2**32 - 1  # maximum per image, because indices have 32 bits


@dataclass(frozen=True)
class MatchedImages:
    """Two images in the order of their matches, and the name of their group, which is empty if there is none."""

    image1: str
    image2: str
    group: str


class HlocFiles:
    """hloc's files as a source of pairs, and a matches file for their geometries.

    The output has hloc's layout: one group per pair with `matches0` and `matching_scores0`, in which outliers are
    unmatched. Each group also has data that hloc ignores: the known matrices among F, E, H, R and t, and the attributes
    config, num_matches, confidence, ms and settings. The last is an index into the file's `caransac_settings`.
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
        settings: str = UNRECORDED,
        strict: bool = True,
    ) -> None:
        """Open the files and find the pairs to verify.

        Args:
            features: file of keypoints, one group per image.
            matches: file of matches, one group per pair.
            pairs: text file with two image names per line.
            out: file to write at the end. Pairs that are already in it, or in the work file of an unfinished run, are
                kept.
            cameras: file of intrinsics in COLMAP's convention, ``name MODEL width height params...`` per line, or None.
            calibrated: "never" ignores the cameras, "always" requires one for every image.
            focal_deviation: relative standard deviation of the cameras' focal lengths; 0 for exact focal lengths.
            overwrite: whether to verify all pairs again. After an interrupted run with the same settings and this
                option, only the remaining pairs are verified.
            settings: settings of the verification, see `describe_settings`. They are stored with the geometries.
            strict: whether to raise for the first pair without matches. Otherwise only `read` raises.

        Raises:
            OSError: a file is missing or is not HDF5.
            ValueError: the content of a file is invalid. The message explains what to do.
        """
        check_calibrated(calibrated)
        features, matches, pairs, out = (
            as_path(path, name)
            for path, name in ((features, "features"), (matches, "matches"), (pairs, "pairs"), (out, "out"))
        )
        cameras = None if cameras is None else as_path(cameras, "cameras")
        _check_output(out, features, matches, pairs, cameras)
        self._cameras = read_cameras(cameras) if cameras is not None and calibrated != "never" else {}
        self._cameras = {
            name: camera if camera.is_fisheye else replace(camera, focal_deviation=focal_deviation)
            for name, camera in self._cameras.items()
        }
        self._sizes_wanted = calibrated != "never"
        names = read_pairs(pairs)
        if calibrated == "always" and (without := sorted({n for pair in names for n in pair} - set(self._cameras))):
            raise ValueError(f"--calibrated always, but --cameras has no line for {without[0]}: add it, or use auto")
        with ExitStack() as opened:  # closed at once after an error, otherwise by `close`
            self._features = opened.enter_context(read_h5(features))
            self._matches = opened.enter_context(read_h5(matches))
            self._pairs = [self._find(*pair, strict) for pair in names]
            self._output = HlocOutput(out, settings, overwrite=overwrite)
            opened.callback(self._output.close)
            self._kept = self._output.kept([pair.group for pair in self._pairs if pair.group])
            self._opened = opened.pop_all()
        self._keypoints = KeypointCache(self._read_keypoints, self._cameras.get, matches)
        self.kept_settings: Mapping[str | None, int] = Counter(kept.settings for kept in self._kept.values())
        self.unpooled: Mapping[int, UnknownCamera] = {}  # the files do not show which images share a camera
        self.pooled: Mapping[int, CameraEstimate] = {}
        self.pending: Sequence[int] = [i for i, pair in enumerate(self._pairs) if pair.group not in self._kept]

    @property
    def kept(self) -> list[PairReport]:
        """Reports of the pairs that were verified before."""
        reports = []
        for pair in self._pairs:
            if (kept := self._kept.get(pair.group)) is not None:
                names = pair.image1, pair.image2
                report = PairReport.of(names, kept.num_matches, kept.inliers, kept.config, kept.confidence, kept.ms)
                reports.append(report.with_focals(self._focal(pair.image1), self._focal(pair.image2)))
        return reports

    def learn_focals(self, found: Mapping[int, CameraEstimate]) -> None:
        """Do nothing, because no focal length is pooled."""

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """Return the known focal lengths of a pair."""
        pair = self._pairs[key]
        return self._focal(pair.image1), self._focal(pair.image2)

    def _focal(self, name: str) -> CameraFocal:
        camera = self._cameras.get(name)
        if camera is None:
            return CameraFocal(None, None, "unknown")
        return CameraFocal(camera.mean_focal, camera.focal_deviation, "given")

    def read(self, key: int) -> PairMatches:
        """Read a pair with its matches."""
        pair = self._pairs[key]
        names = pair.image1, pair.image2
        with naming_pair(names):
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
        """Store geometries in the work file beside the output."""
        self._output.write([(self._pairs[each.key].group, each) for each in found])

    def finish(self) -> None:
        """Write the output and remove the work file."""
        self._output.finish([pair.group for pair in self._pairs if pair.group], self._matches)

    def close(self) -> None:
        """Close the files."""
        self._opened.close()

    def _find(self, image1: str, image2: str, strict: bool) -> MatchedImages:
        """Find the group of a pair's matches, see `find_pair`."""
        pair = find_pair(self._matches, image1, image2)
        if pair.group:
            return pair
        if strict:
            raise self._without_matches(pair)
        return pair

    def _without_matches(self, pair: MatchedImages) -> ValueError:
        return ValueError(
            f"{self._matches.path}: no matches of {pair.image1} and {pair.image2}: match this pair first, or remove "
            "it from --pairs"
        )

    def _read_matches(self, pair: MatchedImages) -> tuple[MatchIndices, Floats | None]:
        """Read the indices (n, 2) of a pair's matches, and their scores (n,) if there are any."""
        if not pair.group:
            raise self._without_matches(pair)
        try:
            return as_matches(self._matches.group(pair.group))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._matches.path}: corrupt matches of {pair.image1} and {pair.image2}: match this pair again "
                f"({error})"
            ) from error

    def _image_size(self, name: str) -> ImageSize | None:
        """Return the size of an image if hloc stored it and it may be used, otherwise None."""
        return read_size(self._features, name) if self._sizes_wanted else None

    def _read_keypoints(self, name: str) -> Floats:
        return read_keypoints(self._features, name)


def _check_output(out: Path, *inputs: str | Path | None) -> None:
    """Raise now if the output cannot be written, or if it would replace an input."""
    check_no_input(out, inputs, "out:")
    check_writable(out)


def find_pair(matches: UntrustedGroup, image1: str, image2: str) -> MatchedImages:
    """Find the group of a pair's matches. A pair in reverse order, which hloc allows, is returned in that order."""
    for first, second in ((image1, image2), (image2, image1)):
        group = "/".join(name.replace("/", "-") for name in (first, second))
        if group in matches:
            return MatchedImages(first, second, group)
    return MatchedImages(image1, image2, "")


def read_keypoints(features: UntrustedGroup, name: str) -> Floats:
    """Read the keypoints (n, 2) of an image, in hloc's pixels."""
    if name not in features or "keypoints" not in features.group(name):
        raise ValueError(f"{features.path}: no keypoints of {name}: extract its features first")
    try:
        keypoints = as_reals(features.group(name).array("keypoints"), "keypoints")
        return np.ascontiguousarray(as_points(keypoints[:, :2], "keypoints"), np.float32)
    except (IndexError, ValueError) as error:
        raise ValueError(
            f"{features.path}: corrupt keypoints of {name}: extract its features again ({error})"
        ) from error


def read_size(features: UntrustedGroup, name: str) -> ImageSize | None:
    """Return the size of an image if hloc stored it, otherwise None."""
    group = features.group(name)
    size = group.array("image_size") if "image_size" in group else np.zeros(0)
    if size.shape != (2,) or size.dtype.kind not in "iuf":
        return None
    try:
        return as_size(np.floor(size), "image_size")
    except ValueError:  # an impossible size
        return None


def as_matches(group: UntrustedGroup) -> tuple[MatchIndices, Floats | None]:
    """Return the indices (n, 2) of the matches in a group, and their scores (n,) if there are any."""
    partners = group.array("matches0")
    if partners.ndim != 1 or partners.dtype.kind not in "iu" or np.any(partners > MOST_KEYPOINTS):
        raise ValueError(f"matches0 must be (n,) indices, got {partners.shape} {partners.dtype}")
    matched = np.flatnonzero(partners >= 0)
    matches = np.stack([matched, partners[matched]], axis=1).astype(np.uint32)
    if "matching_scores0" not in group:
        return matches, None
    scores = group.array("matching_scores0")
    if scores.shape != partners.shape:
        raise ValueError(f"matching_scores0 must have shape {partners.shape}, got {scores.shape}")
    return matches, as_reals(scores[matched], "matching_scores0").astype(np.float32)


def read_cameras(path: Path) -> dict[str, Camera]:
    """Read lines ``name MODEL width height params...``. Return cameras by image name, converted to hloc's pixels."""
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


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Read the pairs of a list, without duplicates."""
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

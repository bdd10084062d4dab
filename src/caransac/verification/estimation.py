"""The verification of pairs: pure functions that any worker can run."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

import caransac
from caransac._support import interrupts
from caransac.api import estimate_fundamental, estimate_relative_pose, profile_focal
from caransac.camera import Camera
from caransac.descriptors import match_ratios
from caransac.focal_pooling import trial_focals
from caransac.geometry import Array, fundamental_from_essential
from caransac.options import Options
from caransac.results import AnyResult, FundamentalResult
from caransac.verification.homography import find_homography, find_rotation
from caransac.verification.records import Config, PairGeometry, PairMatches, VerificationOptions


def verify_batch(pairs: Sequence[PairMatches], options: VerificationOptions, version: str) -> list[PairGeometry]:
    """Verify pairs one after the other; what a worker does, if it has that version of caransac."""
    _check_version(version)
    return [verify_pair(pair, options) for pair in _until_interrupted(pairs)]


def profile_batch(pairs: Sequence[PairMatches], options: VerificationOptions, version: str) -> list[Array | None]:
    """What pairs of one camera each say about its focal length, see `profile_focal`; see `verify_batch`."""
    _check_version(version)
    return [_profile(pair, options) for pair in _until_interrupted(pairs)]


def _check_version(version: str) -> None:
    """Raise if another version asks: workers of a cluster may come at any time."""
    if version != caransac.__version__:
        here = f"{caransac.__version__} on {platform.node()}"
        raise OSError(f"a worker has caransac {here}, and this is {version}: they must be the same")


def _until_interrupted(pairs: Sequence[PairMatches]) -> Iterator[PairMatches]:
    """The pairs; a worker that is a thread stops between two of them."""
    for pair in pairs:
        interrupts.check()
        yield pair


def _profile(pair: PairMatches, options: VerificationOptions) -> Array | None:
    assert pair.image_sizes is not None
    size1, size2 = pair.image_sizes
    return profile_focal(
        image_size1=size1,
        image_size2=size2,
        focals_px=trial_focals(Camera.of_unknown_focal(*size1)),
        options=replace(options.estimation, seed=pair_seed(options.estimation.seed, pair.image1, pair.image2)),
        **_arguments(pair, np.arange(len(pair.matches))),
    )


def verify_pair(pair: PairMatches, options: VerificationOptions) -> PairGeometry:
    """Verify a pair. The geometry depends on the pair and the options alone, not on where or in which order it runs."""
    return estimate_pair(pair, options)[0]


def estimate_pair(pair: PairMatches, options: VerificationOptions) -> tuple[PairGeometry, AnyResult]:
    """What `verify_pair` finds in a pair, and the estimate behind it."""
    started = time.perf_counter()
    estimation = replace(options.estimation, seed=pair_seed(options.estimation.seed, pair.image1, pair.image2))
    usable = np.flatnonzero(np.isfinite(pair.points1).all(axis=1) & np.isfinite(pair.points2).all(axis=1))
    result = _estimate(pair, usable, estimation)
    confident = result.confidence is None or result.confidence >= options.min_confidence
    if result.success and confident and result.num_inliers >= options.min_inliers:
        inliers = usable[result.inliers]
        config, matrices = _describe(pair, inliers, result, estimation)
    else:
        inliers, config, matrices = usable[:0], Config.DEGENERATE, {}
    geometry = PairGeometry(
        key=pair.key,
        image1=pair.image1,
        image2=pair.image2,
        config=config,
        matches=pair.matches[inliers],
        num_matches=len(pair.matches),
        confidence=result.confidence,
        elapsed_ms=1e3 * (time.perf_counter() - started),
        **matrices,
    )
    return geometry, result


def pair_seed(seed: int, image1: str, image2: str) -> int:
    """A seed for a pair of images, from the seed of the run and the images' names."""
    return int.from_bytes(blake2b(f"{seed}\n{image1}\n{image2}".encode(), digest_size=8).digest(), "little")


def _estimate(pair: PairMatches, rows: NDArray[np.intp], options: Options) -> AnyResult:
    """Estimate from the matches `rows` (m,) of a pair."""
    matches = _arguments(pair, rows) | {"options": options}
    if pair.cameras is not None:
        return estimate_relative_pose(
            camera1=pair.cameras[0], camera2=pair.cameras[1], same_camera=pair.same_camera, **matches
        )
    if pair.image_sizes is None:
        return estimate_fundamental(**matches)
    size1, size2 = pair.image_sizes
    return estimate_fundamental(image_size1=size1, image_size2=size2, same_camera=pair.same_camera, **matches)


def _arguments(pair: PairMatches, rows: NDArray[np.intp]) -> dict[str, Any]:
    """The matches `rows` (m,) of a pair as arguments of the estimators."""
    scores, kind = pair.scores, pair.score_kind
    if pair.descriptors is not None:
        scores, kind = match_ratios(*pair.descriptors, pair.matches[:, 1]), "ratio"
    return {
        "points1": pair.points1[rows],
        "points2": pair.points2[rows],
        "scores": None if scores is None else scores[rows],
        "score_kind": kind,
    }


def _describe(
    pair: PairMatches, inliers: NDArray[np.intp], result: AnyResult, options: Options
) -> tuple[Config, dict[str, Array]]:
    """The kind of geometry that an estimate found in a pair, and its matrices by their names in `PairGeometry`."""
    points1, points2 = (points[inliers].astype(float) for points in (pair.points1, pair.points2))
    H = find_homography(points1, points2, result.max_error_px, options.seed)
    homography = {} if H is None else {"H": H}
    if isinstance(result, FundamentalResult):
        assert result.F is not None
        return Config.UNCALIBRATED if H is None else Config.PLANAR_OR_PANORAMIC, {"F": result.F} | homography

    assert result.E is not None and result.R is not None and result.t is not None
    assert result.camera1 is not None and result.camera2 is not None
    camera1, camera2 = result.camera1, result.camera2  # refined, where they were doubtful
    if H is not None:
        rays1, rays2 = camera1.pixels_to_rays(points1), camera2.pixels_to_rays(points2)
        R = find_rotation(rays1, rays2, result.max_error_px / camera2.mean_focal)
        if R is not None:
            H = camera2.K @ R @ np.linalg.inv(camera1.K)
            return Config.PANORAMIC, {"H": H / np.linalg.norm(H), "R": R, "t": np.zeros(3)}
    F = fundamental_from_essential(result.E, camera1.K, camera2.K)
    matrices = {"F": F / np.linalg.norm(F), "E": result.E, "R": result.R, "t": result.t}
    return Config.CALIBRATED if H is None else Config.PLANAR, matrices | homography

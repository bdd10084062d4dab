"""Verify pairs, with pure functions that any worker can run."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from caransac._support import interrupts
from caransac.api.arguments import contains, misfit
from caransac.api.camera_pooling import trial_focals
from caransac.api.camera_profile import CameraProfile
from caransac.api.estimators import estimate_fundamental, estimate_homography, estimate_relative_pose, profile_camera
from caransac.camera import Camera
from caransac.geometry import Array, Floats, fundamental_from_essential, rotation_from_homography
from caransac.io.descriptors import match_ratios
from caransac.options import Options
from caransac.results import EpipolarResult, FundamentalResult, HomographyResult, Result
from caransac.verification.build_identity import build_identity
from caransac.verification.pair_records import Config, PairGeometry, PairMatches, VerificationOptions

Pair = TypeVar("Pair")


def verify_batch(pairs: Sequence[PairMatches], options: VerificationOptions, build: str) -> list[PairGeometry]:
    """Verify pairs one after the other, in a worker. Raise if the worker has another build of caransac."""
    check_build(build)
    return [verify_pair(pair, options) for pair in until_interrupted(pairs)]


class FocalProfile(NamedTuple):
    """Information about a camera from one pair of its images.

    Attributes:
        profile: profile of the focal length, see `profile_camera`; None if there is none.
        ratios: (n,) ratios of the descriptors, kept for the verification because they are slow to compute, or None.
    """

    profile: CameraProfile | None
    ratios: Floats | None = None


def profile_batch(pairs: Sequence[PairMatches], options: VerificationOptions, build: str) -> list[FocalProfile]:
    """Profile the focal lengths of pairs whose images share a camera; see `verify_batch`."""
    check_build(build)
    return [_profile(pair, options) for pair in until_interrupted(pairs)]


def check_build(build: str) -> None:
    """Raise if the caller has another build. Workers of a cluster may join at any time."""
    if build != build_identity():
        here = f"{build_identity()} on {platform.node()}"
        raise OSError(f"a worker has caransac {here}, but the caller has {build}: they must be the same")


def until_interrupted(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the pairs. A worker thread stops between two pairs after an interruption."""
    for pair in pairs:
        interrupts.check()
        yield pair


def _profile(pair: PairMatches, options: VerificationOptions) -> FocalProfile:
    assert pair.image_sizes is not None
    size1, size2 = pair.image_sizes
    from_descriptors, pair = pair.descriptors is not None, _with_ratios(pair)
    if not _sizes_fit(pair, np.arange(len(pair.matches))):
        return FocalProfile(None, pair.scores if from_descriptors else None)
    profile = profile_camera(
        image_size1=size1,
        image_size2=size2,
        focals_px=trial_focals(Camera.of_unknown_focal(*size1)),
        options=replace(options.estimation, seed=pair_seed(options.estimation.seed, pair.image1, pair.image2)),
        **_arguments(pair, np.arange(len(pair.matches))),
    )
    return FocalProfile(profile, pair.scores if from_descriptors else None)


def _with_ratios(pair: PairMatches) -> PairMatches:
    """Return the pair with ratios instead of descriptors, if it has descriptors."""
    if pair.descriptors is None:
        return pair
    return pair.with_ratios(match_ratios(*pair.descriptors, pair.matches[:, 1]))


def verify_pair(pair: PairMatches, options: VerificationOptions) -> PairGeometry:
    """Verify a pair. The result depends only on the pair and the options, not on the worker or the order."""
    return estimate_pair(pair, options)[0]


def estimate_pair(pair: PairMatches, options: VerificationOptions) -> tuple[PairGeometry, EpipolarResult]:
    """Return the result of `verify_pair` and the estimate of the epipolar geometry."""
    started = time.perf_counter()
    pair, policy = _with_ratios(pair), options.policy(calibrated=pair.cameras is not None)
    estimation = replace(options.estimation, seed=pair_seed(options.estimation.seed, pair.image1, pair.image2))
    usable = np.flatnonzero(np.isfinite(pair.points1).all(axis=1) & np.isfinite(pair.points2).all(axis=1))
    found = _estimate(pair, usable, estimation)
    # For a plane or a pure rotation, the epipolar geometry is ambiguous, and the homography is used.
    plane = None if found.degeneracy is None else estimate_homography(**_arguments(pair, usable), options=estimation)
    if plane is not None and not policy.accepts(plane):
        plane = None
    if plane is not None or policy.accepts(found):
        answer: Result = found if plane is None else plane
        if plane is not None and policy.accepts(found) and found.num_inliers > plane.num_inliers:
            answer = found  # points off the plane count, too
        inliers = usable[answer.inliers]
        config, matrices = _describe(found, plane)
    else:
        answer, inliers, config, matrices = found, usable[:0], Config.DEGENERATE, {}
    geometry = PairGeometry(
        key=pair.key,
        image1=pair.image1,
        image2=pair.image2,
        config=config,
        matches=pair.matches[inliers],
        num_matches=len(pair.matches),
        confidence=answer.confidence,
        elapsed_ms=1e3 * (time.perf_counter() - started),
        **matrices,
    )
    return geometry, found


def pair_seed(seed: int, image1: str, image2: str) -> int:
    """Derive the seed of a pair from the seed of the run and the image names."""
    return int.from_bytes(blake2b(f"{seed}\n{image1}\n{image2}".encode(), digest_size=8).digest(), "little")


def _estimate(pair: PairMatches, rows: NDArray[np.intp], options: Options) -> EpipolarResult:
    """Estimate the geometry from the matches `rows` (m,) of a pair."""
    matches = _arguments(pair, rows) | {"options": options}
    cameras = _fitting_cameras(pair.cameras, (matches["points1"], matches["points2"]))
    if cameras is not None:
        return estimate_relative_pose(camera1=cameras[0], camera2=cameras[1], same_camera=pair.same_camera, **matches)
    if pair.image_sizes is None or not _sizes_fit(pair, rows):
        return estimate_fundamental(**matches)
    size1, size2 = pair.image_sizes
    return estimate_fundamental(image_size1=size1, image_size2=size2, same_camera=pair.same_camera, **matches)


def _fitting_cameras(
    cameras: tuple[Camera, Camera] | None, points: tuple[Array, Array]
) -> tuple[Camera, Camera] | None:
    """Drop camera sizes, or the cameras, if the points contradict them. A wrong camera does not stop the run."""
    if cameras is not None and any(map(misfit, cameras, points)):
        cameras = replace(cameras[0], width=0, height=0), replace(cameras[1], width=0, height=0)
    return None if cameras is None or any(map(misfit, cameras, points)) else cameras


def _sizes_fit(pair: PairMatches, rows: NDArray[np.intp]) -> bool:
    """Return True if all points are inside the images. Wrong sizes are ignored; they do not stop the run."""
    assert pair.image_sizes is not None
    points = pair.points1[rows], pair.points2[rows]
    return all(contains(size, each) for size, each in zip(pair.image_sizes, points, strict=True))


def _arguments(pair: PairMatches, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return the matches `rows` (m,) of a pair as arguments of the estimators."""
    return {
        "points1": pair.points1[rows],
        "points2": pair.points2[rows],
        "scores": None if pair.scores is None else pair.scores[rows],
        "score_kind": pair.score_kind,
    }


def _describe(found: EpipolarResult, plane: HomographyResult | None) -> tuple[Config, dict[str, Array]]:
    """Return the kind of geometry of a pair, and its matrices by their names in `PairGeometry`."""
    homography = {} if plane is None or plane.H is None else {"H": plane.H}
    if isinstance(found, FundamentalResult):
        assert found.F is not None
        return Config.PLANAR_OR_PANORAMIC if homography else Config.UNCALIBRATED, {"F": found.F} | homography

    assert found.E is not None and found.R is not None and found.t is not None
    assert found.camera1 is not None and found.camera2 is not None
    camera1, camera2 = found.camera1, found.camera2  # refined if they were uncertain
    if homography and found.degeneracy == "rotation":
        R = rotation_from_homography(homography["H"], camera1.K, camera2.K)
        H = camera2.K @ R @ np.linalg.inv(camera1.K)
        return Config.PANORAMIC, {"H": H / np.linalg.norm(H), "R": R, "t": np.zeros(3)}
    F = fundamental_from_essential(found.E, camera1.K, camera2.K)
    matrices = {"F": F / np.linalg.norm(F), "E": found.E, "R": found.R, "t": found.t}
    return Config.PLANAR if homography else Config.CALIBRATED, matrices | homography

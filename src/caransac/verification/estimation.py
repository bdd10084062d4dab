"""The verification of pairs: pure functions that any worker can run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from caransac.api import estimate_fundamental, estimate_relative_pose
from caransac.camera import Camera
from caransac.geometry import Array, fundamental_from_essential, homogeneous
from caransac.results import AnyResult, FundamentalResult
from caransac.verification.homography import find_homography, find_rotation
from caransac.verification.ratios import ratios
from caransac.verification.records import Config, Geometry, PairMatches, Settings


def verify_batch(pairs: Sequence[PairMatches], settings: Settings) -> list[Geometry]:
    """Verify pairs one after the other; what a worker does."""
    return [verify_pair(pair, settings) for pair in pairs]


def verify_pair(pair: PairMatches, settings: Settings) -> Geometry:
    """Verify a pair. The answer depends on the pair and the settings alone, not on where or in which order it runs."""
    started = time.perf_counter()
    options = replace(settings.options, seed=pair_seed(settings.options.seed, pair.image1, pair.image2))
    scores, kind = pair.scores, pair.score_kind
    if pair.descriptors is not None:
        scores, kind = ratios(*pair.descriptors, pair.matches[:, 1]), "ratio"
    result: AnyResult
    if pair.cameras is None:
        result = estimate_fundamental(pair.points1, pair.points2, scores=scores, score_kind=kind, options=options)
    else:
        result = estimate_relative_pose(
            pair.points1, pair.points2, *pair.cameras, scores=scores, score_kind=kind, options=options
        )
    found = Geometry(
        key=pair.key,
        image1=pair.image1,
        image2=pair.image2,
        config=Config.DEGENERATE,
        matches=pair.matches[:0],
        num_matches=len(pair.matches),
        confidence=result.confidence,
        elapsed_ms=0.0,
    )
    confident = result.confidence is None or result.confidence >= settings.min_confidence
    if result.success and confident and result.num_inliers >= settings.min_inliers:
        found = _describe(pair, result, options.seed, options.max_error_px, found)
    return replace(found, elapsed_ms=1e3 * (time.perf_counter() - started))


def pair_seed(seed: int, image1: str, image2: str) -> int:
    """A seed for a pair of images, from the seed of the run and the images' names."""
    return int.from_bytes(blake2b(f"{seed}\n{image1}\n{image2}".encode(), digest_size=8).digest(), "little")


def _describe(pair: PairMatches, result: AnyResult, seed: int, max_error: float, found: Geometry) -> Geometry:
    """Fill in the geometry of a pair that was estimated well."""
    points1, points2 = (points[result.inliers].astype(float) for points in (pair.points1, pair.points2))
    found = replace(found, matches=pair.matches[result.inliers])
    if isinstance(result, FundamentalResult):
        H = find_homography(points1, points2, max_error, seed)
        config = Config.UNCALIBRATED if H is None else Config.PLANAR_OR_PANORAMIC
        return replace(found, config=config, F=result.F, H=H)

    assert pair.cameras is not None and result.E is not None
    camera1, camera2 = pair.cameras
    rays1, rays2 = camera1.pixels_to_rays(points1), camera2.pixels_to_rays(points2)
    H = find_homography(_without_distortion(camera1, rays1), _without_distortion(camera2, rays2), max_error, seed)
    if H is not None:
        R = find_rotation(rays1, rays2, max_error / camera2.mean_focal)
        if R is not None:
            H = camera2.K @ R @ np.linalg.inv(camera1.K)
            return replace(found, config=Config.PANORAMIC, H=H / np.linalg.norm(H), R=R, t=np.zeros(3))
    F = fundamental_from_essential(result.E, camera1.K, camera2.K)
    return replace(
        found,
        config=Config.CALIBRATED if H is None else Config.PLANAR,
        F=F / np.linalg.norm(F),
        E=result.E,
        H=H,
        R=result.R,
        t=result.t,
    )


def _without_distortion(camera: Camera, rays: Array) -> Array:
    """Pixels (n, 2) of rays (n, 2) in a camera with the same calibration matrix and a perfect lens."""
    return np.asarray((homogeneous(rays) @ camera.K.T)[:, :2])

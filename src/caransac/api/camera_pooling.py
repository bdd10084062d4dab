"""Estimate the focal length and the lens of one camera from many pairs of its images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caransac.api.arguments import ImageSize, unknown_camera
from caransac.api.camera_profile import CameraProfile
from caransac.api.estimators import profile_camera
from caransac.api.many_pairs import PairNames, estimate_all, number
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.options import Options
from caransac.tuning import ERRORS

PoolingReason = Literal["agreement", "too_few_informative", "disagreement"]

# Logarithms of the trial focal lengths relative to the longer side. Cameras with longer focal lengths are hardly
# perspective; cameras with shorter ones are hardly pinhole cameras. Pooled curves are wide enough that a parabola
# through three steps finds their maximum.
LOG_FOCALS = np.arange(np.log(0.35), np.log(2.8), 0.04)
MOST_PAIRS = 200  # maximum number of pairs; beyond a few dozen the error hardly falls
# These three were chosen on the training scenes, like `ErrorFactors.cameras`: errors of matches are correlated.
WRONG = 0.3  # assumed share of pairs whose evidence is worthless, although it looks certain
WIDE = 0.25  # deviation of log f above which a pair is not informative
# Trial values of an additional deviation, beyond the one that each pair states. The most likely value is used.
PAIR_DEVIATIONS = (0.0, 0.02, 0.03, 0.045, 0.065, 0.1, 0.14)
EDGE = 3  # steps: a maximum closer to either end of the focal lengths does not count
# Limits of a known focal length. They and the common deviation below were chosen on training and validation scenes,
# because all training scenes but one determine their focal length.
FEWEST_INFORMATIVE = 5
LEAST_SUPPORT = 0.6  # minimum share of informative pairs that agree
# Maximum relative deviation of the pooled focal length: a third of that of an unknown camera. With it, 23 of 36 sets of
# pairs (RootSIFT, XFeat, ALIKED) have a known focal length. Error / deviation has a root mean square of 0.54 and a
# maximum of 1.1.
LARGEST_DEVIATION = 0.05
RESAMPLES = 200  # bootstrap samples
SHARED_IMAGES = 1.75  # spread of resampled images / spread of resampled pairs, which share images
COMMON_DEVIATION = 0.01  # relative error common to all pairs, from the lens and the principal point
# The same for k1: trial values, maximum deviation, and the error common to all pairs.
K1_STEPS = np.arange(-0.5, 0.5001, 0.005)
LARGEST_K1_DEVIATION, COMMON_K1_DEVIATION = 0.04, 0.01
BENT = 2.0  # |k1| / deviation up to which a lens counts as undistorted


@dataclass(frozen=True)
class CameraEstimate:
    """Focal length and lens of one camera, estimated from many pairs of its images.

    Attributes:
        known: whether the pairs determine the focal length. They do not if the scene is a plane, if the camera moves
            along its line of sight or hardly moves, or if the pairs disagree.
        focal_px: focal length in pixels, or None if it is unknown.
        deviation: relative standard deviation of the focal length, or None if it is unknown.
        num_pairs: number of pairs that were estimated.
        num_informative: number of pairs that constrain the focal length.
        reason: "agreement" if the focal length is known, otherwise "too_few_informative" or "disagreement" of the
            pairs.
        camera: camera with this focal length and deviation, the estimated lens and a centred principal point. If the
            focal length is unknown, the camera to assume, with large deviations.
        k1: radial distortion of the lens, as in COLMAP's SIMPLE_RADIAL; None if k1 or the focal length is unknown.
        k1_deviation: standard deviation of k1, or None if k1 is unknown.
        num_agreeing: number of informative pairs that probably agree with the pooled focal length, even if it is not
            accepted.
    """

    known: bool
    focal_px: float | None
    deviation: float | None
    num_pairs: int
    num_informative: int
    reason: PoolingReason
    camera: Camera
    k1: float | None = None
    k1_deviation: float | None = None
    num_agreeing: int = 0


def estimate_camera(
    pairs: Iterable[object],
    image_size: ImageSize,
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> CameraEstimate:
    """Estimate the focal length and the lens of one camera from pairs of its images.

    The estimate has ``known=False`` if the pairs do not determine them.

    Args:
        pairs: pairs as in `estimate_fundamentals`, all taken by one camera at one zoom. If there are more than 200,
            only 200 are used, evenly chosen from many matches to few.
        image_size: (width, height) of the images in pixels. A pair with a rotated image needs its own `image_size1` and
            `image_size2`.
        options: options of the pairs that have none of their own.
        workers: threads or an executor, as in `estimate_relative_poses`.
        progress: function that is called in the caller's thread after each pair, with the number of finished pairs.

    Raises:
        ValueError: an argument or a pair is wrong; the message names it.
    """
    camera = unknown_camera(image_size, "image_size")
    names, chosen = PairNames(optional=("image_size1", "image_size2")), list(number(pairs))
    if len(chosen) > MOST_PAIRS:
        sizes = estimate_all(_count_matches, names, chosen, options, 1, None)
        chosen = [chosen[i] for i in spread_choice(sizes, MOST_PAIRS)]
    profiles = estimate_all(partial(_profile, camera), names, chosen, options, workers, progress)
    return pool_camera(profiles, camera, seed=0 if options is None else options.seed)


def _count_matches(points1: Sized, **_: object) -> int:
    return len(points1)


def _profile(camera: Camera, **arguments: Any) -> CameraProfile | None:
    """Return the profile of a camera from the arguments of a pair."""
    size = camera.width, camera.height
    sizes = {name: arguments.pop(name, size) for name in ("image_size1", "image_size2")}
    for name, given in sizes.items():
        if unknown_camera(given, name).mean_focal != camera.mean_focal:
            raise ValueError(f"{name} must be {size} like image_size, or rotated, not {given!r}")
    return profile_camera(**sizes, focals_px=trial_focals(camera), **arguments)


def spread_choice(sizes: Sequence[int], most: int) -> list[int]:
    """Return the indices of up to `most` sizes, evenly from the largest to the smallest, in ascending order.

    The pairs with the most matches are those that hardly moved; on their own they do not determine a focal length.
    """
    ranked = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    if len(ranked) > most:
        ranked = [ranked[k * len(ranked) // most] for k in range(most)]
    return sorted(ranked)


def trial_focals(camera: Camera) -> Array:
    """Return the trial focal lengths (k,) of a camera in pixels, which depend only on its size."""
    return np.asarray(np.exp(LOG_FOCALS) * max(camera.width, camera.height))


def pool_camera(profiles: Sequence[CameraProfile | None], camera: Camera, *, seed: int) -> CameraEstimate:
    """Pool the evidence of many pairs.

    The likelihood of each pair is mixed with a uniform one, so that a wrong pair does no more harm than an
    uninformative one. It is widened by the deviation that makes all pairs most likely. The focal length is the maximum
    of the product. Its deviation is the spread over resampled pairs.

    Args:
        profiles: profiles of the pairs at the `trial_focals` of the camera, from `profile_camera`; None for pairs
            without a pose.
        camera: camera to assume if its focal length is unknown.
        seed: seed of the resampling.
    """
    told = [each for each in profiles if each is not None]
    flat = _pool_focals([each.focals for each in told], len(profiles), camera, seed)
    bent = [each.bent_focals for each in told if each.bent_focals is not None]
    found, (k1, deviation) = flat, _pool_k1(told, flat.focal_px, camera, seed)
    if bent:  # a lens without support from all pairs would only blur the focal length
        otherwise = _pool_focals(bent, len(profiles), camera, seed)
        shown, spread = _pool_k1(told, otherwise.focal_px, camera, seed)
        if shown is not None and spread is not None and abs(shown) > BENT * spread:
            found, k1, deviation = otherwise, shown, spread
    if found.focal_px is None or k1 is None or deviation is None:
        return found
    if abs(k1) <= BENT * deviation:
        k1, deviation = 0.0, float(np.hypot(k1, deviation))
    return replace(found, camera=found.camera.with_lens(k1, deviation), k1=k1, k1_deviation=deviation)


def _pool_focals(told: Sequence[Array], num_pairs: int, camera: Camera, seed: int) -> CameraEstimate:
    """Estimate only the focal length, from log-likelihoods (k,) of the pairs; `pool_camera` explains how."""
    likelihoods = np.exp(np.array(told).reshape(-1, len(LOG_FOCALS)) / ERRORS.cameras)
    likelihoods /= likelihoods.mean(axis=1, keepdims=True)
    likelihoods = likelihoods[_is_informative(likelihoods)]
    count = len(likelihoods)
    if count < FEWEST_INFORMATIVE:
        return CameraEstimate(False, None, None, num_pairs, count, "too_few_informative", camera)
    widened = (np.log((1 - WRONG) * _widen(likelihoods, deviation) + WRONG) for deviation in PAIR_DEVIATIONS)
    logs = max(widened, key=lambda each: float(each.sum(axis=0).max()))
    log_focal = float(_maxima(logs.sum(axis=0)[None])[0])
    right = 1 - WRONG / np.array([np.interp(log_focal, LOG_FOCALS, np.exp(each)) for each in logs])  # probabilities
    resamples = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    spread_sq = np.mean((_maxima(np.asarray(resamples @ logs, float)) - log_focal) ** 2)
    # The spread among few pairs is smaller than their error.
    spread = SHARED_IMAGES * float(np.sqrt(spread_sq * count / (count - 3)))
    agreeing = int(np.count_nonzero(right > 0.5))
    if right.mean() < LEAST_SUPPORT or spread > LARGEST_DEVIATION:
        return CameraEstimate(False, None, None, num_pairs, count, "disagreement", camera, num_agreeing=agreeing)
    focal_px = float(np.exp(log_focal)) * max(camera.width, camera.height)
    deviation = float(np.hypot(spread, COMMON_DEVIATION))
    pooled = camera.adjusted(focal_px / camera.mean_focal, (0.0, 0.0), deviation)
    return CameraEstimate(True, focal_px, deviation, num_pairs, count, "agreement", pooled, num_agreeing=agreeing)


def _widen(likelihoods: Array, deviation: float) -> Array:
    """Return likelihoods (m, k) of the trial focal lengths, widened by a deviation and scaled to mean one."""
    if deviation == 0:
        return likelihoods
    kernel = np.exp(-0.5 * ((LOG_FOCALS[:, None] - LOG_FOCALS) / deviation) ** 2)
    wide = likelihoods @ (kernel / kernel.sum(axis=0)).T
    return np.asarray(wide / wide.mean(axis=1, keepdims=True))


def _pool_k1(
    profiles: Sequence[CameraProfile], focal_px: float | None, camera: Camera, seed: int
) -> tuple[float, float] | tuple[None, None]:
    """Return k1 at a focal length and its deviation, pooled like focal lengths; (None, None) if it is unknown."""
    if focal_px is None:
        return None, None
    log_focal = np.log(focal_px / max(camera.width, camera.height))
    told = [
        (float(np.interp(log_focal, LOG_FOCALS, each.k1)), max(each.k1_deviation, COMMON_K1_DEVIATION))
        for each in profiles
        if each.k1 is not None and each.k1_deviation < WIDE
    ]
    prior_deviation = camera.distortion_deviation
    if len(told) < FEWEST_INFORMATIVE or prior_deviation == 0:
        return None, None
    k1, deviations = np.array(told).T
    k1 = k1 * (1 + (deviations / prior_deviation) ** 2)  # removes the prior of each pair; it counts only once
    likelihoods = np.exp(-0.5 * ((K1_STEPS - k1[:, None]) / deviations[:, None]) ** 2)
    likelihoods /= np.maximum(likelihoods.mean(axis=1, keepdims=True), 1e-12)
    logs = np.log((1 - WRONG) * likelihoods + WRONG)
    prior = -0.5 * (K1_STEPS / prior_deviation) ** 2
    resamples = np.random.default_rng(seed).multinomial(len(told), np.full(len(told), 1 / len(told)), RESAMPLES)
    best, *others = _maxima(np.concatenate([logs.sum(axis=0)[None], resamples @ logs]) + prior, K1_STEPS)
    spread = SHARED_IMAGES * float(np.sqrt(np.mean((np.array(others) - best) ** 2) * len(told) / (len(told) - 3)))
    deviation = float(np.hypot(spread, COMMON_K1_DEVIATION))
    scale_sq = (focal_px / camera.mean_focal) ** 2  # k1 refers to rays normalised by the assumed focal length
    return (float(best) * scale_sq, deviation * scale_sq) if deviation < LARGEST_K1_DEVIATION else (None, None)


def _is_informative(likelihoods: Array) -> NDArray[np.bool_]:
    """Return the bool mask (m,) of the likelihoods (m, k) that constrain the focal length."""
    best = likelihoods.argmax(axis=1)
    inside = (best >= EDGE) & (best < len(LOG_FOCALS) - EDGE)
    shares = likelihoods / likelihoods.sum(axis=1, keepdims=True)
    means = shares @ LOG_FOCALS
    deviations = np.sqrt(np.maximum(shares @ LOG_FOCALS**2 - means**2, 0))
    return np.asarray(inside & (deviations < WIDE))


def _maxima(logs: Array, steps: Array = LOG_FOCALS) -> Array:
    """Return the positions (m,) of the maxima of functions (m, k) of evenly spaced steps (k,)."""
    at = np.clip(logs.argmax(axis=1), 1, len(steps) - 2)
    before, here, after = (np.take_along_axis(logs, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = np.minimum(before - 2 * here + after, -1e-12)
    shift = np.clip(0.5 * (before - after) / bend, -1, 1)
    return np.asarray(steps[at] + shift * (steps[1] - steps[0]))

"""One camera, its focal length and its lens, pooled over many pairs of its images."""

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

# Focal lengths in the longer side that are tried, as logarithms. Beyond, cameras are hardly perspective or hardly
# pinholes. Pooled curves are wide enough for a parabola through three of these to find their maxima.
LOG_FOCALS = np.arange(np.log(0.35), np.log(2.8), 0.04)
MOST_PAIRS = 200  # that are estimated; the error falls little beyond a few dozen
# These three were chosen on the training scenes, as was `ErrorFactors.cameras`: matches of a pair err together.
WRONG = 0.3  # share of the pairs whose evidence is assumed to be of no worth, though it looks sure
WIDE = 0.25  # deviation of log f beyond which a pair says nothing
# Deviations of what pairs of one camera err by beyond what each says, which are tried: the likeliest of them is used.
PAIR_DEVIATIONS = (0.0, 0.02, 0.03, 0.045, 0.065, 0.1, 0.14)
EDGE = 3  # steps: a pair whose best focal length is that near to either end has no best one
# What counts as known. These limits, and the common deviation below, were set after a look at the validation scenes
# too, because only one training scene does not show its focal length.
FEWEST_INFORMATIVE = 5
LEAST_SUPPORT = 0.6  # share of the informative pairs that agree
# Relative, of the pooled focal length: a third of that of an unknown one. 23 of 36 sets of pairs (RootSIFT, XFeat,
# ALIKED) are known then; the root mean square of error / deviation is 0.54, the largest 1.1.
LARGEST_DEVIATION = 0.05
RESAMPLES = 200  # of the bootstrap
SHARED_IMAGES = 1.75  # how much more resampled images spread on the training scenes than pairs do, which share them
COMMON_DEVIATION = 0.01  # relative: what all pairs of a camera err by together, its lens and principal point
# The same of k1: values that are tried, and what pairs of a camera err by together.
K1_STEPS = np.arange(-0.5, 0.5001, 0.005)
LARGEST_K1_DEVIATION, COMMON_K1_DEVIATION = 0.04, 0.01
BENT = 2.0  # deviations: a lens of less is taken for a flat one


@dataclass(frozen=True)
class CameraEstimate:
    """What pairs of images say together about their one camera.

    Attributes:
        known: whether they determine it. Pairs that see one plane, or that move along their line of sight or hardly at
            all, do not; nor do such that disagree.
        focal_px: the focal length in pixels; None where it is unknown.
        deviation: its relative standard deviation; None where it is unknown.
        num_pairs: pairs that were estimated.
        num_informative: those of them that say anything about it.
        reason: "agreement" where it is known; else "too_few_informative" or "disagreement" of the pairs.
        camera: a camera of that focal length and deviation with a centred principal point, and of the lens that was
            found; where the focal length is unknown, what to assume of any camera, with deviations that say so.
        k1: radial distortion of the lens, as COLMAP's SIMPLE_RADIAL has it; None where it, or the focal length, is
            unknown.
        k1_deviation: its standard deviation; None where it is unknown.
        num_agreeing: informative pairs that agree with the pooled focal length, known or not, rather than not.
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
    """Estimate focal length and lens of one camera from pairs of its images, or find that they do not determine them.

    Args:
        pairs: as in `estimate_fundamentals`, all taken by one camera at one zoom. Of more than 200 pairs, 200 from many
            matches to few are used.
        image_size: (width, height) in pixels of the images. A pair with a turned image brings its `image_size1` and
            `image_size2`.
        options: for the pairs that do not bring their own.
        workers: as in `estimate_relative_poses`.
        progress: called in the caller's thread with the number of pairs done, after each.

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
    """What the pair of these arguments says about a camera."""
    size = camera.width, camera.height
    sizes = {name: arguments.pop(name, size) for name in ("image_size1", "image_size2")}
    for name, given in sizes.items():
        if unknown_camera(given, name).mean_focal != camera.mean_focal:
            raise ValueError(f"{name} must be {size} like image_size, or turned, not {given!r}")
    return profile_camera(**sizes, focals_px=trial_focals(camera), **arguments)


def spread_choice(sizes: Sequence[int], most: int) -> list[int]:
    """Indices of at most so many of the given sizes, evenly from the largest to the smallest, in rising order.

    Only the pairs with the most matches would be those that hardly moved, which show no focal length.
    """
    ranked = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    if len(ranked) > most:
        ranked = [ranked[k * len(ranked) // most] for k in range(most)]
    return sorted(ranked)


def trial_focals(camera: Camera) -> Array:
    """(k,) focal lengths in pixels to try for a camera, of which only the size matters."""
    return np.asarray(np.exp(LOG_FOCALS) * max(camera.width, camera.height))


def pool_camera(profiles: Sequence[CameraProfile | None], camera: Camera, *, seed: int) -> CameraEstimate:
    """Pool what pairs say.

    Each pair's likelihood is a mixture with an even one, so that a pair that is surely wrong counts as one that says
    nothing. It is wider than the pair says, by the deviation that makes all pairs likeliest. The maximum of the product
    is the focal length; its spread over resampled pairs, the deviation.

    Args:
        profiles: what pairs say of the `trial_focals` of the camera and of its lens, from `profile_camera`; None of
            pairs that say nothing.
        camera: as it is to be assumed where its focal length is unknown.
        seed: of the resampling.
    """
    told = [each for each in profiles if each is not None]
    flat = _pool_focals([each.focals for each in told], len(profiles), camera, seed)
    bent = [each.bent_focals for each in told if each.bent_focals is not None]
    found, (k1, deviation) = flat, _pool_k1(told, flat.focal_px, camera, seed)
    if bent:  # a lens that all pairs together do not show would only blur the focal length
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
    """Only the focal length, from the log-likelihoods (k,) of the informative pairs; see `pool_camera`."""
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
    # Few pairs vary less among themselves than they err.
    spread = SHARED_IMAGES * float(np.sqrt(spread_sq * count / (count - 3)))
    agreeing = int(np.count_nonzero(right > 0.5))
    if right.mean() < LEAST_SUPPORT or spread > LARGEST_DEVIATION:
        return CameraEstimate(False, None, None, num_pairs, count, "disagreement", camera, num_agreeing=agreeing)
    focal_px = float(np.exp(log_focal)) * max(camera.width, camera.height)
    deviation = float(np.hypot(spread, COMMON_DEVIATION))
    pooled = camera.adjusted(focal_px / camera.mean_focal, (0.0, 0.0), deviation)
    return CameraEstimate(True, focal_px, deviation, num_pairs, count, "agreement", pooled, num_agreeing=agreeing)


def _widen(likelihoods: Array, deviation: float) -> Array:
    """Likelihoods (m, k) of the trial focal lengths, with another deviation of the pairs; of mean one."""
    if deviation == 0:
        return likelihoods
    kernel = np.exp(-0.5 * ((LOG_FOCALS[:, None] - LOG_FOCALS) / deviation) ** 2)
    wide = likelihoods @ (kernel / kernel.sum(axis=0)).T
    return np.asarray(wide / wide.mean(axis=1, keepdims=True))


def _pool_k1(
    profiles: Sequence[CameraProfile], focal_px: float | None, camera: Camera, seed: int
) -> tuple[float, float] | tuple[None, None]:
    """k1 that pairs agree on at a focal length, as focal lengths are pooled, and its deviation; None for none."""
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
    k1 = k1 * (1 + (deviations / prior_deviation) ** 2)  # the prior, which each pair had, counts once
    likelihoods = np.exp(-0.5 * ((K1_STEPS - k1[:, None]) / deviations[:, None]) ** 2)
    likelihoods /= np.maximum(likelihoods.mean(axis=1, keepdims=True), 1e-12)
    logs = np.log((1 - WRONG) * likelihoods + WRONG)
    prior = -0.5 * (K1_STEPS / prior_deviation) ** 2
    resamples = np.random.default_rng(seed).multinomial(len(told), np.full(len(told), 1 / len(told)), RESAMPLES)
    best, *others = _maxima(np.concatenate([logs.sum(axis=0)[None], resamples @ logs]) + prior, K1_STEPS)
    spread = SHARED_IMAGES * float(np.sqrt(np.mean((np.array(others) - best) ** 2) * len(told) / (len(told) - 3)))
    deviation = float(np.hypot(spread, COMMON_K1_DEVIATION))
    scale_sq = (focal_px / camera.mean_focal) ** 2  # rays at the focal length that was assumed are told of
    return (float(best) * scale_sq, deviation * scale_sq) if deviation < LARGEST_K1_DEVIATION else (None, None)


def _is_informative(likelihoods: Array) -> NDArray[np.bool_]:
    """Which likelihoods (m, k) of the trial focal lengths say anything: (m,)."""
    best = likelihoods.argmax(axis=1)
    inside = (best >= EDGE) & (best < len(LOG_FOCALS) - EDGE)
    shares = likelihoods / likelihoods.sum(axis=1, keepdims=True)
    means = shares @ LOG_FOCALS
    deviations = np.sqrt(np.maximum(shares @ LOG_FOCALS**2 - means**2, 0))
    return np.asarray(inside & (deviations < WIDE))


def _maxima(logs: Array, steps: Array = LOG_FOCALS) -> Array:
    """Where functions (m, k) of even steps (k,), the trial focal lengths as logarithms, are largest: (m,)."""
    at = np.clip(logs.argmax(axis=1), 1, len(steps) - 2)
    before, here, after = (np.take_along_axis(logs, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = np.minimum(before - 2 * here + after, -1e-12)
    shift = np.clip(0.5 * (before - after) / bend, -1, 1)
    return np.asarray(steps[at] + shift * (steps[1] - steps[0]))

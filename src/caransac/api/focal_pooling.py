"""The focal length of one camera, pooled over many pairs of its images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caransac.api.arguments import ImageSize, unknown_camera
from caransac.api.estimators import profile_focal
from caransac.api.many_pairs import PairNames, estimate_all
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.options import Options

PoolingReason = Literal["agreement", "too_few_informative", "disagreement"]

# Focal lengths in the longer side that are tried, as logarithms. Beyond, cameras are hardly perspective or hardly
# pinholes. Pooled curves are wide enough for a parabola through three of these to find their maxima.
LOG_FOCALS = np.arange(np.log(0.35), np.log(2.8), 0.04)
MOST_PAIRS = 200  # that are estimated; the error falls little beyond a few dozen
# These four were chosen on the training scenes. Matches of a pair err together, by lens and scene, and count a quarter.
TEMPER = 4.0
WRONG = 0.3  # share of the pairs whose evidence is assumed to be of no worth, though it looks sure
WIDE = 0.25  # deviation of log f beyond which a pair says nothing
EDGE = 3  # steps: a pair whose best focal length is that near to either end has no best one
# What counts as known. These limits, and the common deviation below, were set after a look at the validation scenes
# too, because only one training scene does not show its focal length.
FEWEST_INFORMATIVE = 5
LEAST_SUPPORT = 0.6  # share of the informative pairs that agree
LARGEST_DEVIATION = 0.035  # relative, of the pooled focal length
RESAMPLES = 200  # of the bootstrap
SHARED_IMAGES = 1.75  # how much more resampled images spread on the training scenes than pairs do, which share them
COMMON_DEVIATION = 0.01  # relative: what all pairs of a camera err by together, its lens and principal point


@dataclass(frozen=True)
class FocalEstimate:
    """What pairs of images say together about the focal length of their one camera.

    Attributes:
        known: whether they determine it. Pairs that see one plane, or that move along their line of sight or hardly at
            all, do not; nor do such that disagree.
        focal_px: the focal length in pixels; None where it is unknown.
        deviation: its relative standard deviation; None where it is unknown.
        num_pairs: pairs that were estimated.
        num_informative: those of them that say anything about it.
        reason: "agreement" where it is known; else "too_few_informative" or "disagreement" of the pairs.
        camera: a camera of that focal length and deviation with a centred principal point; where the focal length is
            unknown, what to assume of any camera, with a deviation that says so.
    """

    known: bool
    focal_px: float | None
    deviation: float | None
    num_pairs: int
    num_informative: int
    reason: PoolingReason
    camera: Camera


def estimate_focal(
    pairs: Iterable[object],
    image_size: ImageSize,
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> FocalEstimate:
    """Estimate the focal length of one camera from pairs of its images, or find that they do not determine it.

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
    lens = unknown_camera(image_size, "image_size")
    names, chosen = PairNames(optional=("image_size1", "image_size2")), list(enumerate(pairs))
    if len(chosen) > MOST_PAIRS:
        sizes = estimate_all(_count_matches, names, chosen, options, 1, None)
        chosen = [chosen[i] for i in spread_choice(sizes, MOST_PAIRS)]
    profiles = estimate_all(partial(_profile, lens), names, chosen, options, workers, progress)
    return pool_focal(profiles, lens, seed=0 if options is None else options.seed)


def _count_matches(points1: Sized, **_: object) -> int:
    return len(points1)


def _profile(lens: Camera, **arguments: Any) -> Array | None:
    """What the pair of these arguments says about a camera."""
    size = lens.width, lens.height
    sizes = {name: arguments.pop(name, size) for name in ("image_size1", "image_size2")}
    for name, given in sizes.items():
        if unknown_camera(given, name).mean_focal != lens.mean_focal:
            raise ValueError(f"{name} must be {size} like image_size, or turned, not {given!r}")
    return profile_focal(**sizes, focals_px=trial_focals(lens), **arguments)


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


def pool_focal(profiles: Sequence[Array | None], lens: Camera, *, seed: int) -> FocalEstimate:
    """Pool what pairs say.

    Each pair's likelihood is a mixture with an even one, so that a pair that is surely wrong counts as one that says
    nothing. The maximum of their product is the focal length; its spread over resampled pairs, the deviation.

    Args:
        profiles: (k,) log-likelihoods of the `trial_focals` of the camera, from `profile_focal`; None of pairs without.
        lens: the camera, as it is to be assumed where its focal length is unknown.
        seed: of the resampling.
    """
    told = np.array([profile for profile in profiles if profile is not None]).reshape(-1, len(LOG_FOCALS))
    likelihoods = np.exp(told / TEMPER)
    likelihoods /= likelihoods.mean(axis=1, keepdims=True)
    likelihoods = likelihoods[_is_informative(likelihoods)]
    count = len(likelihoods)

    def unknown(reason: PoolingReason) -> FocalEstimate:
        return FocalEstimate(False, None, None, len(profiles), count, reason, lens)

    if count < FEWEST_INFORMATIVE:
        return unknown("too_few_informative")
    logs = np.log((1 - WRONG) * likelihoods + WRONG)
    log_focal = float(_maxima(logs.sum(axis=0)[None])[0])
    near = (1 - WRONG) * np.array([np.interp(log_focal, LOG_FOCALS, likelihood) for likelihood in likelihoods])
    support = float(np.mean(near / (near + WRONG)))
    resamples = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    spread_sq = np.mean((_maxima(np.asarray(resamples @ logs, float)) - log_focal) ** 2)
    # Few pairs vary less among themselves than they err.
    spread = SHARED_IMAGES * float(np.sqrt(spread_sq * count / (count - 3)))
    if support < LEAST_SUPPORT or spread > LARGEST_DEVIATION:
        return unknown("disagreement")
    focal_px = float(np.exp(log_focal)) * max(lens.width, lens.height)
    deviation = float(np.hypot(spread, COMMON_DEVIATION))
    camera = lens.adjusted(focal_px / lens.mean_focal, (0.0, 0.0), deviation)
    return FocalEstimate(True, focal_px, deviation, len(profiles), count, "agreement", camera)


def _is_informative(likelihoods: Array) -> NDArray[np.bool_]:
    """Which likelihoods (m, k) of the trial focal lengths say anything: (m,)."""
    best = likelihoods.argmax(axis=1)
    inside = (best >= EDGE) & (best < len(LOG_FOCALS) - EDGE)
    shares = likelihoods / likelihoods.sum(axis=1, keepdims=True)
    means = shares @ LOG_FOCALS
    deviations = np.sqrt(np.maximum(shares @ LOG_FOCALS**2 - means**2, 0))
    return np.asarray(inside & (deviations < WIDE))


def _maxima(logs: Array) -> Array:
    """The log focal lengths (m,) at which functions (m, k) of the trial focal lengths are largest."""
    at = np.clip(logs.argmax(axis=1), 1, len(LOG_FOCALS) - 2)
    before, here, after = (np.take_along_axis(logs, (at + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = np.minimum(before - 2 * here + after, -1e-12)
    shift = np.clip(0.5 * (before - after) / bend, -1, 1)
    return np.asarray(LOG_FOCALS[at] + shift * (LOG_FOCALS[1] - LOG_FOCALS[0]))

"""The common interface of pygcransac and pymagsac, because MAGSAC++ is built on GC-RANSAC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caransac.geometry import Array
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import Answer, ProblemName, RunSettings
from caransac_lab.datasets import Pair

MIN_ITERATIONS = 50  # default of both libraries
MIN_MATCHES = {"E": 8, "F": 10, "H": 8}  # pymagsac crashes with fewer matches
UNIFORM, PROSAC = 0, 1


def find_matrix(
    library: Any,
    pair: Pair,
    problem: ProblemName,
    settings: RunSettings,
    image_sizes: Callable[[Pair], tuple[float, ...]],
    **options: Any,
) -> Answer | None:
    """Run a library with PROSAC sampling, or with uniform sampling if there are no scores.

    Args:
        library: module of the library.
        pair: matches, best first if they have scores.
        problem: problem, which selects the function to call.
        settings: settings of every method.
        image_sizes: function that returns sizes of both images that contain all points, in the library's order.
        **options: options of the library.
    """
    if len(pair.points1) < MIN_MATCHES[problem]:
        return None
    options |= _common_options(settings, PROSAC if pair.scores is not None else UNIFORM)
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    if problem == "F":
        matrix, _ = library.findFundamentalMatrix(matches, *image_sizes(pair), **options)
    else:
        cameras = pair.camera1.K, pair.camera2.K
        matrix, _ = library.findEssentialMatrix(matches, *cameras, *image_sizes(pair), **options)
    return None if matrix is None else Answer(matrix=np.asarray(matrix, float))


def find_homography(
    library: Any, pair: PlanePair, settings: RunSettings, image_sizes: tuple[float, ...], **options: Any
) -> Array | None:
    """Estimate a homography by a library with PROSAC sampling; arguments as in `find_matrix`."""
    if len(pair.points1) < MIN_MATCHES["H"]:
        return None
    matches = np.ascontiguousarray(np.concatenate([pair.points1, pair.points2], axis=1))
    H, _ = library.findHomography(matches, *image_sizes, **options | _common_options(settings, PROSAC))
    return None if H is None else np.asarray(H, float)


def _common_options(settings: RunSettings, sampler: int) -> dict[str, Any]:
    fewest, most = settings.limits
    return {
        "probabilities": np.empty(0),
        "sampler": sampler,
        "conf": settings.success_probability,
        "min_iters": MIN_ITERATIONS if fewest is None else fewest,
        "max_iters": most,
    }

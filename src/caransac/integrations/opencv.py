"""OpenCV's findEssentialMat and findFundamentalMat, answered by caransac. OpenCV itself is not needed.

    from caransac.integrations import opencv as cv2_robust
    E, mask = cv2_robust.findEssentialMat(points1, points2, K, cv2.RANSAC, 0.999, 1.0)

Arguments, defaults and returns are cv2's, in every call form, and what follows (cv2.recoverPose, ...) can stay. Three
keyword arguments are new: `scores` and `score_kind` as in `caransac.estimate_relative_pose`, and `options`, the
`caransac.Options` to start from, in which only what the call states is replaced.

What differs, always to the safe side: a matrix is one 3x3 matrix or None, never a stack of candidates; without a matrix
the mask is zero, where cv2 leaves it as it was or as memory happens to be; NaN, a skewed camera matrix and methods that
are not robust raise a ValueError instead of being ignored; lists are accepted. The method (cv2.RANSAC, LMEDS or USAC_*)
does not choose the estimator, which is CA-RANSAC or what `options` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac import api
from caransac.camera import Camera, as_camera
from caransac.geometry import Array
from caransac.integrations.settings import Meanings, means, translate
from caransac.options import Options, ScoreKind, in_rounds

LMEDS, RANSAC = 4, 8
USAC_METHODS = range(32, 39)
MIN_POINTS = {"E": 5, "F": 7}  # below, cv2 returns no mask either

ESSENTIAL_DEFAULTS = {"prob": 0.999, "threshold": 1.0, "maxIters": 1000}
FUNDAMENTAL_DEFAULTS = {"confidence": 0.99, "ransacReprojThreshold": 3.0, "maxIters": 1000}
USAC_SETTINGS = ("threshold", "confidence", "maxIterations", "randomGeneratorState")


@dataclass(frozen=True)
class _Request:
    """What a call asks for, whichever form it had.

    Attributes:
        asked: cv2's settings by name, those the call leaves open left out.
        mask: where the caller wants the mask, or None.
        cameras: the two cameras; none for a fundamental matrix.
    """

    asked: dict[str, Any]
    mask: NDArray[np.uint8] | None
    cameras: tuple[Camera, ...] = ()


def findEssentialMat(
    points1: ArrayLike,
    points2: ArrayLike,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Array | None, NDArray[np.uint8] | None]:
    """``cv2.findEssentialMat`` in all its forms.

        findEssentialMat(points1, points2, cameraMatrix[, method[, prob[, threshold[, maxIters[, mask]]]]])
        findEssentialMat(points1, points2[, focal[, pp[, method[, prob[, threshold[, maxIters[, mask]]]]]]])
        findEssentialMat(points1, points2, cameraMatrix1, distCoeffs1, cameraMatrix2, distCoeffs2
                         [, method[, prob[, threshold[, mask]]]])
        findEssentialMat(points1, points2, cameraMatrix1, cameraMatrix2, dist_coeff1, dist_coeff2, params[, mask])

    Args:
        points1: (N, 2), (N, 1, 2) or (1, N, 2) pixels in image 1, any real dtype, or a list of points.
        points2: pixels in image 2.
        *args: the rest of one of the forms; as in cv2, None stands for a default. `threshold` is a Sampson distance in
            pixels, `maxIters` the largest number of hypotheses. Distortion coefficients are (k1, k2, p1, p2[, k3[, k4,
            k5, k6]]). Of `params`, a cv2.UsacParams, threshold, confidence, maxIterations and randomGeneratorState
            count; how to sample, score and polish is the estimator's own business.
        scores: (N,) one number per match, see `caransac.estimate_relative_pose`.
        score_kind: what the scores are, "ratio" or "confidence"; needed with scores.
        options: the options to start from; what the call does not state comes from here.
        **kwargs: the same by name.

    Returns:
        E (3, 3) float64 of norm one, or None where the data determine none; mask (N, 1) uint8, or the array passed in,
        None with fewer than five points.

    Raises:
        ValueError: an argument has a wrong shape or value; the message names it.
        TypeError: no form has these arguments.
    """
    request = _bind("findEssentialMat", _essential_form(args, kwargs), args, kwargs)
    found = api.estimate_relative_pose(
        _as_points(points1),
        _as_points(points2),
        *request.cameras,
        scores=scores,
        score_kind=score_kind,
        options=_options(request, options, ESSENTIAL_DEFAULTS, SETTINGS),
    )
    E = None if found.E is None else found.E / np.linalg.norm(found.E)
    return E, _write_mask(request.mask, found.inliers, "E")


def findFundamentalMat(
    points1: ArrayLike,
    points2: ArrayLike,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Array | None, NDArray[np.uint8] | None]:
    """``cv2.findFundamentalMat`` in all its robust forms.

        findFundamentalMat(points1, points2, method, ransacReprojThreshold, confidence, maxIters[, mask])
        findFundamentalMat(points1, points2[, method[, ransacReprojThreshold[, confidence[, mask]]]])
        findFundamentalMat(points1, points2, params[, mask])

    Arguments and errors as in `findEssentialMat`. As in cv2, `ransacReprojThreshold` is the larger of the distances to
    the two epipolar lines for FM_RANSAC and FM_LMEDS, and a Sampson distance for USAC methods.

    Returns:
        F (3, 3) float64 with F[2, 2] = 1 (norm one where that entry is zero), or None where the data determine none;
        mask (N, 1) uint8, or the array passed in, None with fewer than seven points.
    """
    request = _bind("findFundamentalMat", _fundamental_form(args, kwargs), args, kwargs)
    settings = SETTINGS if request.asked.get("method", RANSAC) in USAC_METHODS else SETTINGS | LINE_DISTANCE
    found = api.estimate_fundamental(
        _as_points(points1),
        _as_points(points2),
        scores=scores,
        score_kind=score_kind,
        options=_options(request, options, FUNDAMENTAL_DEFAULTS, settings),
    )
    F = found.F
    if F is not None and abs(F[2, 2]) > np.finfo(np.float32).eps:
        F = F / F[2, 2]
    return F, _write_mask(request.mask, found.inliers, "F")


def _essential_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., _Request]:
    """Which form of findEssentialMat a call has, by its first arguments."""
    arrays = [np.ndim(value) > 0 for value in (*args, 0, 0, 0)]
    if "params" in kwargs or any(_is_usac_params(value) for value in args):
        return _with_two_cameras_and_params
    if arrays[2] or {"cameraMatrix1", "distCoeffs1", "cameraMatrix2", "distCoeffs2"} & kwargs.keys():
        return _with_two_cameras
    if arrays[0] or "cameraMatrix" in kwargs:
        return _with_camera_matrix
    return _with_focal


def _fundamental_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., _Request]:
    """Which form of findFundamentalMat a call has."""
    if "params" in kwargs or any(_is_usac_params(value) for value in args):
        return _with_params
    return _with_mask_last if len(args) == 4 and isinstance(args[3], np.ndarray) else _with_method


def _bind(name: str, form: Callable[..., _Request], args: Sequence[Any], kwargs: dict[str, Any]) -> _Request:
    try:
        signature(form).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}; this form takes {', '.join(signature(form).parameters)}") from error
    return form(*args, **kwargs)


def _with_camera_matrix(
    cameraMatrix: Any,
    method: Any = None,
    prob: Any = None,
    threshold: Any = None,
    maxIters: Any = None,
    mask: Any = None,
) -> _Request:
    camera = as_camera(cameraMatrix, "cameraMatrix")
    return _Request(_given(method=method, prob=prob, threshold=threshold, maxIters=maxIters), mask, (camera, camera))


def _with_focal(
    focal: Any = None,
    pp: Any = None,
    method: Any = None,
    prob: Any = None,
    threshold: Any = None,
    maxIters: Any = None,
    mask: Any = None,
) -> _Request:
    try:
        camera = Camera("SIMPLE_PINHOLE", (1.0 if focal is None else focal, *((0.0, 0.0) if pp is None else pp)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"focal must be a positive length and pp a point (x, y), both in pixels: {error}") from error
    return _with_camera_matrix(camera, method, prob, threshold, maxIters, mask)


def _with_two_cameras(
    cameraMatrix1: Any,
    distCoeffs1: Any,
    cameraMatrix2: Any,
    distCoeffs2: Any,
    method: Any = None,
    prob: Any = None,
    threshold: Any = None,
    mask: Any = None,
) -> _Request:
    cameras = _lens(cameraMatrix1, distCoeffs1, 1), _lens(cameraMatrix2, distCoeffs2, 2)
    return _Request(_given(method=method, prob=prob, threshold=threshold), mask, cameras)


def _with_two_cameras_and_params(
    cameraMatrix1: Any, cameraMatrix2: Any, dist_coeff1: Any, dist_coeff2: Any, params: Any, mask: Any = None
) -> _Request:
    cameras = _lens(cameraMatrix1, dist_coeff1, 1), _lens(cameraMatrix2, dist_coeff2, 2)
    return _Request(_with_params(params).asked, mask, cameras)


def _with_method(
    method: Any = None,
    ransacReprojThreshold: Any = None,
    confidence: Any = None,
    maxIters: Any = None,
    mask: Any = None,
) -> _Request:
    asked = _given(method=method, ransacReprojThreshold=ransacReprojThreshold, confidence=confidence, maxIters=maxIters)
    return _Request(asked, mask)


def _with_mask_last(method: Any, ransacReprojThreshold: Any, confidence: Any, mask: Any) -> _Request:
    return _with_method(method, ransacReprojThreshold, confidence, mask=mask)


def _with_params(params: Any, mask: Any = None) -> _Request:
    if not _is_usac_params(params):
        raise ValueError(f"params must be a cv2.UsacParams, not a {type(params).__name__}")
    return _Request({name: getattr(params, name) for name in USAC_SETTINGS}, mask)


def _given(**arguments: Any) -> dict[str, Any]:
    """The arguments that were given: all but those that are None."""
    return {name: value for name, value in arguments.items() if value is not None}


def _is_usac_params(value: object) -> bool:
    return all(hasattr(value, name) for name in USAC_SETTINGS)


def _lens(matrix: Any, coefficients: Any, number: int) -> Camera:
    """Camera of a matrix and OpenCV's distortion coefficients."""
    as_camera(matrix, f"cameraMatrix{number}")
    return as_camera((matrix, coefficients), f"distCoeffs{number}")


def _check_method(method: Any) -> dict[str, Any]:
    if method not in (RANSAC, LMEDS, *USAC_METHODS):
        raise ValueError(f"must be cv2.RANSAC, cv2.LMEDS or one of cv2.USAC_*, which are robust, not {method!r}")
    return {}


SETTINGS: dict[str, Any] = {
    "method": _check_method,
    "prob": means("success_probability"),
    "confidence": means("success_probability"),
    "threshold": means("max_error_px"),
    "ransacReprojThreshold": means("max_error_px"),
    "maxIters": in_rounds,
    "maxIterations": in_rounds,
    "randomGeneratorState": means("seed"),
}
# With both images at the same scale, a match this far from both its lines has a Sampson distance of 1 / sqrt(2) of it.
LINE_DISTANCE = {"ransacReprojThreshold": lambda distance_px: {"max_error_px": distance_px / 2**0.5}}


def _options(request: _Request, options: Options | None, defaults: dict[str, Any], settings: Meanings) -> Options:
    """The caller's options, or else cv2's defaults, with what the call states in their place."""
    asked = defaults | request.asked if options is None else request.asked
    return translate(Options() if options is None else options, asked, settings, "argument")


def _as_points(points: ArrayLike) -> Any:
    """Points (N, 1, 2) and (1, N, 2), and an empty list, as (N, 2); the rest is left for the estimation to judge."""
    try:
        array = np.asarray(points)
    except ValueError:
        return points
    if array.size == 0 or (array.ndim == 3 and array.shape[2] == 2 and 1 in array.shape[:2]):
        return array.reshape(-1, 2)
    return points


def _write_mask(mask: Any, inliers: NDArray[np.bool_], problem: str) -> NDArray[np.uint8] | None:
    """The mask (N, 1), in the caller's array if that fits, as in cv2."""
    if isinstance(mask, np.ndarray) and mask.dtype == np.uint8 and mask.size == len(inliers):
        mask[...] = inliers.reshape(mask.shape)
        return mask
    return inliers.astype(np.uint8)[:, None] if len(inliers) >= MIN_POINTS[problem] else None

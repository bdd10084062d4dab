"""Drop-in replacements for OpenCV's robust estimators. OpenCV itself is not needed.

    from caransac.integrations import opencv as cv2
    E, mask = cv2.findEssentialMat(points1, points2, K, cv2.RANSAC, 0.999, 1.0)
    _, R, t, _ = cv2.recoverPose(E, points1, points2, K, mask=mask)
    found, rvec, tvec, inliers = cv2.solvePnPRansac(points3d, points2d, K, None)

The replaced functions are findEssentialMat, findFundamentalMat, findHomography and solvePnPRansac.

If OpenCV is installed, all other names (cv2.recoverPose, cv2.imread, ...) are taken from it. Arguments, defaults and
returns are cv2's, in every call form. Three keyword arguments are new: `scores` and `score_kind` as in
`caransac.estimate_relative_pose`, and `options`, a `caransac.Options`. Arguments of the call override the options.

There are a few differences, all of them safer:

- A matrix is one 3x3 matrix or None, never a stack of candidates.
- Without a matrix the mask is zero; cv2 leaves it unchanged or uninitialised.
- NaN, a skewed camera matrix and unknown methods raise a ValueError instead of being ignored.
- Lists are accepted.

The method (cv2.RANSAC, LMEDS or USAC_*) does not choose the estimator: it is CA-RANSAC, or the method of `options`.
Methods that are not robust (FM_7POINT, FM_8POINT and 0) run in OpenCV itself. They do not support `scores` and
`options` and raise an error for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caransac import api
from caransac._support.arrays import as_points as as_pixels
from caransac.geometry import Array
from caransac.integrations.opencv_arrays import as_points, is_umat, write_mask
from caransac.integrations.opencv_calls import (
    HOMOGRAPHY_SETTINGS,
    LEAST_SQUARES,
    LINE_DISTANCE,
    NOT_ROBUST,
    SETTINGS,
    USAC_METHODS,
    Request,
    as_options,
    bind,
    essential_form,
    fundamental_form,
    homography_form,
    load_opencv,
)
from caransac.integrations.opencv_calls import LMEDS as LMEDS
from caransac.integrations.opencv_calls import RANSAC as RANSAC
from caransac.integrations.opencv_pnp import solvePnPRansac as solvePnPRansac
from caransac.integrations.originals import all_names, original_attribute
from caransac.options import Options, ScoreKind

ESSENTIAL_DEFAULTS = {"prob": 0.999, "threshold": 1.0, "maxIters": 1000}
FUNDAMENTAL_DEFAULTS = {"confidence": 0.99, "ransacReprojThreshold": 3.0, "maxIters": 1000}
HOMOGRAPHY_DEFAULTS = {"confidence": 0.995, "ransacReprojThreshold": 3.0, "maxIters": 2000}


def findEssentialMat(
    points1: ArrayLike,
    points2: ArrayLike,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Array | None, Any]:
    """Replace ``cv2.findEssentialMat`` in all its forms.

        findEssentialMat(points1, points2, cameraMatrix[, method[, prob[, threshold[, maxIters[, mask]]]]])
        findEssentialMat(points1, points2[, focal[, pp[, method[, prob[, threshold[, maxIters[, mask]]]]]]])
        findEssentialMat(points1, points2, cameraMatrix1, distCoeffs1, cameraMatrix2, distCoeffs2
                         [, method[, prob[, threshold[, mask]]]])
        findEssentialMat(points1, points2, cameraMatrix1, cameraMatrix2, dist_coeff1, dist_coeff2, params[, mask])

    Args:
        points1: (N, 2), (N, 1, 2) or (1, N, 2) pixels in image 1, of any real dtype; a list of points; or a cv2.UMat.
        points2: pixels in image 2, in any of these forms.
        *args: the other arguments of one of the forms. As in cv2, None means the default. `threshold` is a Sampson
            distance in pixels. `maxIters` is the maximum number of hypotheses, up to a million. Distortion coefficients
            are (k1, k2, p1, p2[, k3[, k4, k5, k6]]). `params` is a cv2.UsacParams, of which only threshold, confidence,
            maxIterations and randomGeneratorState are used; its settings of sampling, scoring and polishing are
            ignored.
        scores: (N,) quality of each match; see `caransac.estimate_relative_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).
        options: options for everything that the call does not state (new).
        **kwargs: the same arguments by name.

    Returns:
        E (3, 3) float64 of norm one, or None if the data do not determine E; and the mask (N, 1) uint8, or the given
        mask array, or None with fewer than five points. As in cv2, the mask is a cv2.UMat if an argument is one.

    Raises:
        ValueError: an argument has a wrong shape or value; the message names it.
        TypeError: no form has these arguments.
    """
    on_device = any(map(is_umat, (points1, points2, *args, *kwargs.values())))
    request = bind("findEssentialMat", essential_form(args, kwargs), args, kwargs)
    found = api.estimate_relative_pose(
        as_points(points1, "points1"),
        as_points(points2, "points2"),
        *request.cameras,
        scores=scores,
        score_kind=score_kind,
        options=as_options(request, options, ESSENTIAL_DEFAULTS, SETTINGS),
    )
    E = None if found.E is None else found.E / np.linalg.norm(found.E)
    return E, write_mask(request.mask, found.inliers, fewest=5, on_device=on_device)


def findFundamentalMat(
    points1: ArrayLike,
    points2: ArrayLike,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Array | None, Any]:
    """Replace ``cv2.findFundamentalMat`` in all its forms.

        findFundamentalMat(points1, points2, method, ransacReprojThreshold, confidence, maxIters[, mask])
        findFundamentalMat(points1, points2[, method[, ransacReprojThreshold[, confidence[, mask]]]])
        findFundamentalMat(points1, points2, params[, mask])

    Arguments and errors are those of `findEssentialMat`. Points may be homogeneous: (N, 3), (N, 1, 3) or (1, N, 3). As
    in cv2, `ransacReprojThreshold` limits the Sampson distance for USAC methods. For FM_RANSAC and FM_LMEDS it limits
    the distances to both epipolar lines. FM_7POINT, FM_8POINT and 0 are not robust. They run in OpenCV, which must be
    installed, and raise an error with `scores` or `options`.

    Returns:
        F (3, 3) float64 with F[2, 2] = 1 (or norm one if that entry is zero), or None if the data do not determine F;
        and the mask (N, 1) uint8, or the given mask array, or None with fewer than seven points.
    """
    on_device = any(map(is_umat, (points1, points2, *args, *kwargs.values())))
    request = bind("findFundamentalMat", fundamental_form(args, kwargs), args, kwargs)
    if _is_plain(request, scores, options):
        return load_opencv().findFundamentalMat(points1, points2, *args, **kwargs)  # type: ignore[no-any-return]  # cv2 is untyped
    settings = SETTINGS if request.method in USAC_METHODS else SETTINGS | LINE_DISTANCE
    found = api.estimate_fundamental(
        as_points(points1, "points1", homogeneous=True),
        as_points(points2, "points2", homogeneous=True),
        scores=scores,
        score_kind=score_kind,
        options=as_options(request, options, FUNDAMENTAL_DEFAULTS, settings),
    )
    return _scaled(found.F), write_mask(request.mask, found.inliers, fewest=7, on_device=on_device)


def findHomography(
    srcPoints: ArrayLike,
    dstPoints: ArrayLike,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Array | None, Any]:
    """Replace ``cv2.findHomography`` in all its forms.

        findHomography(srcPoints, dstPoints[, method[, ransacReprojThreshold[, mask[, maxIters[, confidence]]]]])
        findHomography(srcPoints, dstPoints, params[, mask])

    Arguments and errors are those of `findFundamentalMat`; the method cv2.RHO is accepted, too. `ransacReprojThreshold`
    limits the root mean square of the distances in both images. If both images have the same scale, that is cv2's
    distance in the second image. The default method 0 is least squares over all points. It runs in OpenCV, which must
    be installed, and raises an error with `scores` or `options`. Calls with four points run in OpenCV, too, because
    four points always determine a homography.

    Returns:
        H (3, 3) float64 with H[2, 2] = 1 (or norm one if that entry is zero), or None if the data do not determine H;
        and the mask (N, 1) uint8, or the given mask array, or None with fewer than four points.
    """
    on_device = any(map(is_umat, (srcPoints, dstPoints, *args, *kwargs.values())))
    request = bind("findHomography", homography_form(args, kwargs), args, kwargs)
    if not request.with_params:
        request.asked.setdefault("method", LEAST_SQUARES)
    source = as_pixels(as_points(srcPoints, "srcPoints", homogeneous=True), "srcPoints")
    target = as_pixels(as_points(dstPoints, "dstPoints", homogeneous=True), "dstPoints")
    four_points = len(source) == len(target) == 4 and scores is None and options is None
    if four_points or _is_plain(request, scores, options):
        return load_opencv().findHomography(srcPoints, dstPoints, *args, **kwargs)  # type: ignore[no-any-return]  # cv2 is untyped
    found = api.estimate_homography(
        source,
        target,
        scores=scores,
        score_kind=score_kind,
        options=as_options(request, options, HOMOGRAPHY_DEFAULTS, HOMOGRAPHY_SETTINGS),
    )
    return _scaled(found.H), write_mask(request.mask, found.inliers, fewest=4, on_device=on_device)


def _is_plain(request: Request, scores: ArrayLike | None, options: Options | None) -> bool:
    """Return True if a call asks for a method that is not robust, without any argument that OpenCV lacks."""
    return request.method in NOT_ROBUST and scores is None and options is None


def _scaled(matrix: Array | None) -> Array | None:
    """Return a matrix whose last entry is one, or the given matrix if that entry is about zero."""
    if matrix is None or abs(matrix[2, 2]) <= np.finfo(np.float32).eps:
        return matrix
    return np.asarray(matrix / matrix[2, 2])


def __getattr__(name: str) -> Any:
    return original_attribute("cv2", name, "opencv-python-headless")


def __dir__() -> list[str]:
    return all_names("cv2", globals())

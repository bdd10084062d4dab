"""OpenCV's solvePnPRansac, answered by caransac: see `caransac.integrations.opencv`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caransac import api
from caransac._support.arrays import as_points as as_pixels
from caransac._support.arrays import as_rows, is_integer, shorten
from caransac.geometry import vector_from_rotation
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import is_on
from caransac.integrations.opencv_arrays import as_points, downloaded, is_umat
from caransac.integrations.opencv_calls import PNP_SETTINGS, as_options, bind, load_opencv, pnp_form
from caransac.options import Options, ScoreKind
from caransac.results import AbsolutePoseResult

PNP_DEFAULTS = {"confidence": 0.99, "reprojectionError": 8.0}  # cv2's hundred iterations would be a third of a round
PLANAR_FLAGS = (6, 7)  # cv2.SOLVEPNP_IPPE and SOLVEPNP_IPPE_SQUARE: what these assume of the points is not checked here


def solvePnPRansac(
    objectPoints: ArrayLike,
    imagePoints: ArrayLike,
    cameraMatrix: ArrayLike,
    distCoeffs: ArrayLike | None,
    *args: Any,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    options: Options | None = None,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """``cv2.solvePnPRansac`` in both its forms.

        solvePnPRansac(objectPoints, imagePoints, cameraMatrix, distCoeffs[, rvec[, tvec[, useExtrinsicGuess
                       [, iterationsCount[, reprojectionError[, confidence[, inliers[, flags]]]]]]]])
        solvePnPRansac(objectPoints, imagePoints, cameraMatrix, distCoeffs[, rvec[, tvec[, inliers[, params]]]])

    Args:
        objectPoints: (N, 3), (N, 1, 3) or (1, N, 3) 3D points, any real dtype, or a list, or a cv2.UMat.
        imagePoints: (N, 2), (N, 1, 2) or (1, N, 2) pixels.
        cameraMatrix: (3, 3).
        distCoeffs: (k1, k2, p1, p2[, k3[, k4, k5, k6]]), or None.
        *args: the rest of one of the forms; as in cv2, None stands for a default. `reprojectionError` is the threshold
            in pixels, `iterationsCount` the largest number of hypotheses; left open, ours holds. `flags` does not
            choose the estimator; a guess of the pose (`useExtrinsicGuess`) and the flags for planar targets,
            SOLVEPNP_IPPE and SOLVEPNP_IPPE_SQUARE, are OpenCV's own business, and with `scores` or `options` they
            raise.
        scores: (N,) one number per match, see `caransac.estimate_absolute_pose`.
        score_kind: what the scores are, "ratio" or "confidence"; needed with scores.
        options: the options to start from; what the call does not state comes from here.
        **kwargs: the same by name.

    Returns:
        Whether there is a pose; with `params` the camera matrix; rvec (3, 1), tvec (3, 1), zero without a pose; the
        indices (k, 1) int32 of the inliers, None without a pose.

    Raises:
        ValueError: an argument has a wrong shape or value; the message names it.
        TypeError: no form has these arguments.
    """
    request = bind("solvePnPRansac", pnp_form(args, kwargs), args, kwargs)
    guessed, flags = request.asked.pop("useExtrinsicGuess", False), request.asked.pop("flags", 0)
    if not is_integer(flags):
        raise ValueError(f"flags must be one of cv2.SOLVEPNP_*, not {shorten(flags)}")
    if is_on(guessed, "useExtrinsicGuess") or flags in PLANAR_FLAGS:
        if scores is not None or options is not None:
            raise ValueError(
                "scores and options have no meaning for useExtrinsicGuess and for planar flags, OpenCV's own"
            )
        return tuple(load_opencv().solvePnPRansac(objectPoints, imagePoints, cameraMatrix, distCoeffs, *args, **kwargs))
    lens = downloaded(cameraMatrix), None if distCoeffs is None else downloaded(distCoeffs)
    pixels = as_pixels(as_points(imagePoints, "imagePoints"), "imagePoints")
    space = as_rows(as_points(objectPoints, "objectPoints", width=3), "objectPoints", 3)
    if len(pixels) != len(space):
        raise ValueError(f"objectPoints and imagePoints must have the same length, got {len(space)} and {len(pixels)}")
    found = api.estimate_absolute_pose(
        pixels,
        space,
        as_camera(lens, "cameraMatrix, distCoeffs"),
        scores=scores,
        score_kind=score_kind,
        options=as_options(request, options, PNP_DEFAULTS, PNP_SETTINGS),
    )
    on_device = any(map(is_umat, (objectPoints, imagePoints, *args, *kwargs.values())))
    camera = (cameraMatrix,) if request.with_params else ()
    return (found.success, *camera, *_vectors(found, on_device))


def _vectors(found: AbsolutePoseResult, on_device: bool) -> tuple[Any, Any, Any]:
    """rvec, tvec and the indices of the inliers, as OpenCV has them; on a device as cv2.UMat."""
    rvec, tvec, inliers = np.zeros((3, 1)), np.zeros((3, 1)), None
    if found.R is not None and found.t is not None:
        rvec, tvec = vector_from_rotation(found.R).reshape(3, 1), found.t.reshape(3, 1)
        inliers = np.flatnonzero(found.inliers).astype(np.int32)[:, None]
    if not on_device:
        return rvec, tvec, inliers
    to_device = load_opencv().UMat
    return to_device(rvec), to_device(tvec), None if inliers is None else to_device(inliers)

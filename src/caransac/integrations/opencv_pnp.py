"""Drop-in replacement for OpenCV's solvePnPRansac; see `caransac.integrations.opencv`."""

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

PNP_DEFAULTS = {"confidence": 0.99, "reprojectionError": 8.0}  # cv2's 100 iterations are less than half a round
PLANAR_FLAGS = (6, 7)  # cv2.SOLVEPNP_IPPE and SOLVEPNP_IPPE_SQUARE, which need points on a plane


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
    """Replace ``cv2.solvePnPRansac`` in both its forms.

        solvePnPRansac(objectPoints, imagePoints, cameraMatrix, distCoeffs[, rvec[, tvec[, useExtrinsicGuess
                       [, iterationsCount[, reprojectionError[, confidence[, inliers[, flags]]]]]]]])
        solvePnPRansac(objectPoints, imagePoints, cameraMatrix, distCoeffs[, rvec[, tvec[, inliers[, params]]]])

    Args:
        objectPoints: (N, 3), (N, 1, 3) or (1, N, 3) 3D points, of any real dtype; a list; or a cv2.UMat.
        imagePoints: (N, 2), (N, 1, 2) or (1, N, 2) pixels.
        cameraMatrix: (3, 3) calibration matrix.
        distCoeffs: distortion coefficients (k1, k2, p1, p2[, k3[, k4, k5, k6]]), or None.
        *args: the other arguments of one of the forms. As in cv2, None means the default. `reprojectionError` is the
            threshold in pixels. `iterationsCount` is the maximum number of hypotheses; its default is that of
            `options`. `flags` does not choose the estimator. Calls with a guess of the pose (`useExtrinsicGuess`) or
            with a flag for planar targets (SOLVEPNP_IPPE and SOLVEPNP_IPPE_SQUARE) run in OpenCV and raise an error
            with `scores` or `options`.
        scores: (N,) quality of each match; see `caransac.estimate_absolute_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).
        options: options for everything that the call does not state (new).
        **kwargs: the same arguments by name.

    Returns:
        Whether there is a pose; the camera matrix, only with `params`; rvec (3, 1) and tvec (3, 1), zero without a
        pose; and the indices (k, 1) int32 of the inliers, None without a pose.

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
                "scores and options cannot be used with useExtrinsicGuess or planar flags, which run in OpenCV"
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
    """Return rvec, tvec and the indices of the inliers like OpenCV; as cv2.UMat if `on_device`."""
    rvec, tvec, inliers = np.zeros((3, 1)), np.zeros((3, 1)), None
    if found.R is not None and found.t is not None:
        rvec, tvec = vector_from_rotation(found.R).reshape(3, 1), found.t.reshape(3, 1)
        inliers = np.flatnonzero(found.inliers).astype(np.int32)[:, None]
    if not on_device:
        return rvec, tvec, inliers
    to_device = load_opencv().UMat
    return to_device(rvec), to_device(tvec), None if inliers is None else to_device(inliers)

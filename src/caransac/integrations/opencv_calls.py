"""The forms that calls of OpenCV's estimators take: which settings, cameras and mask each asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from caransac._support.arrays import is_integer
from caransac.camera import Camera
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import Meanings, limited_to, means, translate
from caransac.integrations.opencv_arrays import downloaded, is_umat
from caransac.options import Options

LEAST_SQUARES, FM_7POINT, FM_8POINT, LMEDS, RANSAC, RHO = 0, 1, 2, 4, 8, 16  # cv2's numbers
NOT_ROBUST = (LEAST_SQUARES, FM_7POINT, FM_8POINT)  # they use all points, whatever these are
USAC_METHODS = range(32, 39)
USAC_SETTINGS = ("threshold", "confidence", "maxIterations", "randomGeneratorState")


@dataclass(frozen=True)
class Request:
    """What a call asks for, whichever form it had.

    Attributes:
        asked: cv2's settings by name, those the call leaves open left out.
        mask: where the caller wants the mask, or None.
        cameras: the two cameras; none for a fundamental matrix.
        with_params: whether the call has the form of cv2.UsacParams.
    """

    asked: dict[str, Any]
    mask: Any
    cameras: tuple[Camera, ...] = ()
    with_params: bool = False

    @property
    def method(self) -> int | None:
        """The number of the method, None where the call leaves it open or it is none."""
        method = self.asked.get("method")
        return method if is_integer(method) else None


def essential_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Request]:
    """Which form of findEssentialMat a call has, by its first arguments."""
    arrays = [is_umat(value) or np.ndim(value) > 0 for value in (*args, 0, 0, 0)]
    if "params" in kwargs or any(_is_usac_params(value) for value in args):
        return _with_two_cameras_and_params
    if arrays[2] or {"cameraMatrix1", "distCoeffs1", "cameraMatrix2", "distCoeffs2"} & kwargs.keys():
        return _with_two_cameras
    if arrays[0] or "cameraMatrix" in kwargs:
        return _with_camera_matrix
    return _with_focal


def fundamental_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Request]:
    """Which form of findFundamentalMat a call has."""
    if "params" in kwargs or any(_is_usac_params(value) for value in args):
        return _with_params
    last_is_mask = len(args) == 4 and (is_umat(args[3]) or isinstance(args[3], np.ndarray))
    return _with_mask_last if last_is_mask else _with_method


def homography_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Request]:
    """Which form of findHomography a call has."""
    return _with_params if "params" in kwargs or any(_is_usac_params(value) for value in args) else _with_mask_inside


def pnp_form(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[..., Request]:
    """Which form of solvePnPRansac a call has."""
    with_params = "params" in kwargs or any(_is_usac_params(value) for value in args)
    return _with_vectors_and_params if with_params else _with_vectors


def load_opencv() -> Any:
    """The module cv2."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("a method that is not robust needs OpenCV: pip install opencv-python-headless") from error
    return cv2


def bind(name: str, form: Callable[..., Request], args: Sequence[Any], kwargs: dict[str, Any]) -> Request:
    """What a call of one form asks for; a TypeError where the form has no such arguments."""
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
) -> Request:
    camera = as_camera(downloaded(cameraMatrix), "cameraMatrix")
    return Request(_given(method=method, prob=prob, threshold=threshold, maxIters=maxIters), mask, (camera, camera))


def _with_focal(
    focal: Any = None,
    pp: Any = None,
    method: Any = None,
    prob: Any = None,
    threshold: Any = None,
    maxIters: Any = None,
    mask: Any = None,
) -> Request:
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
) -> Request:
    cameras = _lens(cameraMatrix1, distCoeffs1, 1), _lens(cameraMatrix2, distCoeffs2, 2)
    return Request(_given(method=method, prob=prob, threshold=threshold), mask, cameras)


def _with_two_cameras_and_params(
    cameraMatrix1: Any, cameraMatrix2: Any, dist_coeff1: Any, dist_coeff2: Any, params: Any, mask: Any = None
) -> Request:
    cameras = _lens(cameraMatrix1, dist_coeff1, 1), _lens(cameraMatrix2, dist_coeff2, 2)
    return Request(_with_params(params).asked, mask, cameras)


def _with_method(
    method: Any = None,
    ransacReprojThreshold: Any = None,
    confidence: Any = None,
    maxIters: Any = None,
    mask: Any = None,
) -> Request:
    asked = _given(method=method, ransacReprojThreshold=ransacReprojThreshold, confidence=confidence, maxIters=maxIters)
    return Request(asked, mask)


def _with_mask_last(method: Any, ransacReprojThreshold: Any, confidence: Any, mask: Any) -> Request:
    return _with_method(method, ransacReprojThreshold, confidence, mask=mask)


def _with_mask_inside(
    method: Any = LEAST_SQUARES,
    ransacReprojThreshold: Any = None,
    mask: Any = None,
    maxIters: Any = None,
    confidence: Any = None,
) -> Request:
    method = LEAST_SQUARES if method is None else method
    return _with_method(method, ransacReprojThreshold, confidence, maxIters, mask)


def _with_params(params: Any, mask: Any = None) -> Request:
    if not _is_usac_params(params):
        raise ValueError(f"params must be a cv2.UsacParams, not a {type(params).__name__}")
    return Request({name: getattr(params, name) for name in USAC_SETTINGS}, mask)


def _with_vectors(
    rvec: Any = None,  # noqa: ARG001  # cv2's names: only a guess is read from these, and OpenCV reads it
    tvec: Any = None,  # noqa: ARG001  # likewise
    useExtrinsicGuess: Any = None,
    iterationsCount: Any = None,
    reprojectionError: Any = None,
    confidence: Any = None,
    inliers: Any = None,  # noqa: ARG001  # which cv2 does not write to
    flags: Any = None,
) -> Request:
    asked = _given(
        useExtrinsicGuess=useExtrinsicGuess,
        iterationsCount=iterationsCount,
        reprojectionError=reprojectionError,
        confidence=confidence,
        flags=flags,
    )
    return Request(asked, None)


def _with_vectors_and_params(
    rvec: Any = None,  # noqa: ARG001  # as above
    tvec: Any = None,  # noqa: ARG001  # likewise
    inliers: Any = None,  # noqa: ARG001  # likewise
    params: Any = None,
) -> Request:
    return replace(_with_params(params), with_params=True)


def _given(**arguments: Any) -> dict[str, Any]:
    """The arguments that were given: all but those that are None."""
    return {name: value for name, value in arguments.items() if value is not None}


def _is_usac_params(value: object) -> bool:
    return all(hasattr(value, name) for name in USAC_SETTINGS)


def _lens(matrix: Any, coefficients: Any, number: int) -> Camera:
    """Camera of a matrix and OpenCV's distortion coefficients."""
    matrix = as_camera(downloaded(matrix), f"cameraMatrix{number}").K
    return as_camera((matrix, downloaded(coefficients)), f"distCoeffs{number}")


def _check_method(method: Any) -> dict[str, Any]:
    if method not in (RANSAC, LMEDS, *USAC_METHODS):
        raise ValueError(f"must be cv2.RANSAC, cv2.LMEDS or one of cv2.USAC_*, which are robust, not {method!r}")
    return {}


def _check_homography_method(method: Any) -> dict[str, Any]:
    return {} if method == RHO else _check_method(method)


SETTINGS: dict[str, Any] = {
    "method": _check_method,
    "prob": means("success_probability"),
    "confidence": means("success_probability"),
    "threshold": means("max_error_px"),
    "ransacReprojThreshold": means("max_error_px"),
    "maxIters": limited_to,
    "maxIterations": limited_to,
    "randomGeneratorState": means("seed"),
}
PNP_SETTINGS = SETTINGS | {"reprojectionError": means("max_error_px"), "iterationsCount": limited_to}
HOMOGRAPHY_SETTINGS = SETTINGS | {"method": _check_homography_method}
# With both images at the same scale, a match this far from both its lines has a Sampson distance of 1 / sqrt(2) of it.
LINE_DISTANCE = {"ransacReprojThreshold": lambda distance_px: {"max_error_px": distance_px / 2**0.5}}


def as_options(request: Request, options: Options | None, defaults: dict[str, Any], settings: Meanings) -> Options:
    """The caller's options, or else cv2's defaults, with what the call states in their place."""
    asked = defaults | request.asked if options is None else request.asked
    return translate(Options() if options is None else options, asked, settings, "argument")

"""Call forms of OpenCV's estimators: settings, cameras and mask of each form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from caransac._support.arrays import is_integer
from caransac.camera import Camera
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import Meanings, limited_to, means, translate
from caransac.integrations.opencv_arrays import downloaded, is_umat
from caransac.options import Options

LEAST_SQUARES, FM_7POINT, FM_8POINT, LMEDS, RANSAC, RHO = 0, 1, 2, 4, 8, 16  # cv2's numbers
NOT_ROBUST = (LEAST_SQUARES, FM_7POINT, FM_8POINT)  # they use all points, including outliers
USAC_METHODS = range(32, 39)
USAC_SETTINGS = ("threshold", "confidence", "maxIterations", "randomGeneratorState")

# The arguments of each form after the points, in cv2's order. Arguments in brackets are optional.
ONE_CAMERA = "cameraMatrix [method prob threshold maxIters mask]"
FOCAL = "[focal pp method prob threshold maxIters mask]"
TWO_CAMERAS = "cameraMatrix1 distCoeffs1 cameraMatrix2 distCoeffs2 [method prob threshold mask]"
TWO_CAMERAS_AND_PARAMS = "cameraMatrix1 cameraMatrix2 dist_coeff1 dist_coeff2 params [mask]"
PARAMS = "params [mask]"
METHOD = "[method ransacReprojThreshold confidence maxIters mask]"
MASK_LAST = "method ransacReprojThreshold confidence mask"
MASK_INSIDE = "[method ransacReprojThreshold mask maxIters confidence]"
VECTORS = "[rvec tvec useExtrinsicGuess iterationsCount reprojectionError confidence inliers flags]"
VECTORS_AND_PARAMS = "[rvec tvec inliers params]"
NO_SETTINGS = ("mask", "params", "focal", "pp", "rvec", "tvec", "inliers")  # cv2 does not write to the last three


@dataclass(frozen=True)
class Request:
    """Content of a call, independent of its form.

    Attributes:
        asked: settings of cv2 by name, without those that the call does not state.
        mask: mask array of the caller, or None.
        cameras: the two cameras; empty for a fundamental matrix.
        with_params: whether the call has the form with cv2.UsacParams.
    """

    asked: dict[str, Any]
    mask: Any
    cameras: tuple[Camera, ...] = ()
    with_params: bool = False

    @property
    def method(self) -> int | None:
        """Number of the method, or None if the call does not state a valid one."""
        method = self.asked.get("method")
        return method if is_integer(method) else None


def essential_form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the form of a call of findEssentialMat, by its first arguments."""
    arrays = [is_umat(value) or np.ndim(value) > 0 for value in (*args, 0, 0, 0)]
    if _has_params(args, kwargs):
        return TWO_CAMERAS_AND_PARAMS
    if arrays[2] or {"cameraMatrix1", "distCoeffs1", "cameraMatrix2", "distCoeffs2"} & kwargs.keys():
        return TWO_CAMERAS
    return ONE_CAMERA if arrays[0] or "cameraMatrix" in kwargs else FOCAL


def fundamental_form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the form of a call of findFundamentalMat."""
    if _has_params(args, kwargs):
        return PARAMS
    last_is_mask = len(args) == 4 and (is_umat(args[3]) or isinstance(args[3], np.ndarray))
    return MASK_LAST if last_is_mask else METHOD


def homography_form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the form of a call of findHomography."""
    return PARAMS if _has_params(args, kwargs) else MASK_INSIDE


def pnp_form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the form of a call of solvePnPRansac."""
    return VECTORS_AND_PARAMS if _has_params(args, kwargs) else VECTORS


def load_opencv() -> Any:
    """Return the module cv2."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("a method that is not robust needs OpenCV: pip install opencv-python-headless") from error
    return cv2


def bind(name: str, form: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Request:
    """Return the content of a call of one form. Raise a TypeError if the form has no such arguments."""
    needed, _, others = form.rstrip("]").partition("[")
    parameters = [Parameter(word, Parameter.POSITIONAL_OR_KEYWORD) for word in needed.split()]
    parameters += [Parameter(word, Parameter.POSITIONAL_OR_KEYWORD, default=None) for word in others.split()]
    try:
        given = Signature(parameters).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{name}(): {error}; this form takes {', '.join(form.strip('[]').split())}") from error
    cameras = _cameras(form, given)
    if "params" in form:
        params = given.get("params")
        if not _is_usac_params(params):
            raise ValueError(f"params must be a cv2.UsacParams, not a {type(params).__name__}")
        asked = {setting: getattr(params, setting) for setting in USAC_SETTINGS}
    else:
        asked = {
            setting: value
            for setting, value in given.items()
            if value is not None and setting not in NO_SETTINGS and not setting.startswith(("camera", "dist"))
        }
    return Request(asked, given.get("mask"), cameras, "params" in form)


def _cameras(form: str, given: Mapping[str, Any]) -> tuple[Camera, ...]:
    """Return the two cameras of a form, or an empty tuple if it has no cameras."""
    if form is ONE_CAMERA:
        return (as_camera(downloaded(given["cameraMatrix"]), "cameraMatrix"),) * 2
    if form is FOCAL:
        focal, pp = given.get("focal"), given.get("pp")
        try:
            camera = Camera("SIMPLE_PINHOLE", (1.0 if focal is None else focal, *((0.0, 0.0) if pp is None else pp)))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"focal must be a positive length and pp a point (x, y), both in pixels: {error}"
            ) from error
        return camera, camera
    lenses = []
    for number in (1, 2) if "cameraMatrix1" in given else ():
        matrix = as_camera(downloaded(given[f"cameraMatrix{number}"]), f"cameraMatrix{number}").K
        coefficients = given[f"distCoeffs{number}" if form is TWO_CAMERAS else f"dist_coeff{number}"]
        lenses.append(as_camera((matrix, downloaded(coefficients)), f"distCoeffs{number}"))
    return tuple(lenses)


def _has_params(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return "params" in kwargs or any(_is_usac_params(value) for value in args)


def _is_usac_params(value: object) -> bool:
    return all(hasattr(value, name) for name in USAC_SETTINGS)


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
# If both images have the same scale, the Sampson distance of a match is its distance to both lines, divided by sqrt(2).
LINE_DISTANCE = {"ransacReprojThreshold": lambda distance_px: {"max_error_px": distance_px / 2**0.5}}


def as_options(request: Request, options: Options | None, defaults: dict[str, Any], settings: Meanings) -> Options:
    """Return the caller's options, or cv2's defaults, changed by the settings of the call."""
    asked = defaults | request.asked if options is None else request.asked
    return translate(Options() if options is None else options, asked, settings, "argument")

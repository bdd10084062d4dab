"""Cameras in the forms that users have: matrices, dicts, and the cameras of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast

from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, shorten
from caransac.camera import DEVIATIONS, Camera


class DescribedCamera(Protocol):
    """A camera of another library that describes itself, such as pycolmap.Camera."""

    def todict(self) -> Mapping[str, Any]:
        """Return a dict for `Camera.from_dict`."""


class NamedCamera(Protocol):
    """A camera of another library that names its model, such as poselib.Camera.

    A negative width or height is unknown.
    """

    params: Any
    width: int
    height: int

    def model_name(self) -> str:
        """Return the name of one of COLMAP's models."""


# Accepted cameras: a Camera, a 3x3 calibration matrix, OpenCV's pair (K, distortion coefficients), a COLMAP-style dict
# {model, params, width, height}, a pycolmap.Camera or a poselib.Camera.
OpencvCamera = tuple[ArrayLike, ArrayLike | None]
CameraLike = Camera | ArrayLike | OpencvCamera | Mapping[str, object] | DescribedCamera | NamedCamera


def as_camera(value: CameraLike, name: str) -> Camera:
    """Convert any accepted form of a camera. Errors name the argument."""
    try:
        if isinstance(value, Camera):
            return value
        described = value if isinstance(value, Mapping) else _described(value)
        if described is not None:
            return Camera.from_dict(described)
        if isinstance(value, tuple | list) and len(value) == 2:
            return Camera.from_opencv(cast(ArrayLike, value[0]), cast(ArrayLike | None, value[1]))
        if isinstance(value, str):
            raise ValueError(f"must be a camera, not a text; Camera.from_text({shorten(value)}) may convert it")
        if (shape := as_array(value, "K").shape) != (3, 3):
            raise ValueError(
                f"K must be 3x3, got shape {shape}. A camera is a caransac.Camera (see Camera.from_text), "
                "a 3x3 matrix K, a pair (K, distortion coefficients), a dict of model and params, a pycolmap.Camera or "
                "a poselib.Camera"
            )
        return Camera.from_matrix(cast(ArrayLike, value))
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _described(value: Any) -> Mapping[str, Any] | None:
    """Return an object as a dict by its method todict() or model_name(), or None if it has neither."""
    if callable(getattr(value, "todict", None)):
        return cast(Mapping[str, Any], value.todict())
    if callable(getattr(value, "model_name", None)):
        named = {name: getattr(value, name, 0) for name in ("width", "height", *DEVIATIONS)}
        return {"model": value.model_name(), "params": value.params, **{key: max(n, 0) for key, n in named.items()}}
    return None


def without_size(camera: Camera) -> Camera:
    """Return the camera without its size, which then is not checked.

    Scripts for other libraries pass arbitrary sizes.
    """
    return replace(camera, width=0, height=0)

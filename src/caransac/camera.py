"""Cameras, which map pixels to rays and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import LARGEST_SIDE, as_reals, as_size, is_real, shorten
from caransac.camera_priors import (
    SMALLEST_DEVIATION,
    UNKNOWN_DISTORTION_DEVIATION,
    UNKNOWN_FOCAL,
    UNKNOWN_FOCAL_DEVIATION,
    check_deviation,
    parse_lens,
    split_deviation,
)
from caransac.geometry import Array
from caransac.geometry.lens import PROJECTIONS, Distortion, project, unproject

# Parameters of each COLMAP camera model, in COLMAP's order.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "SIMPLE_PINHOLE": ("f", "cx", "cy"),
    "PINHOLE": ("fx", "fy", "cx", "cy"),
    "SIMPLE_RADIAL": ("f", "cx", "cy", "k1"),
    "RADIAL": ("f", "cx", "cy", "k1", "k2"),
    "OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2"),
    "FULL_OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
    "FOV": ("fx", "fy", "cx", "cy", "omega"),
    "SIMPLE_DIVISION": ("f", "cx", "cy", "k"),
    "DIVISION": ("fx", "fy", "cx", "cy", "k"),
    "EUCM": ("fx", "fy", "cx", "cy", "alpha", "beta"),
    "SIMPLE_FISHEYE": ("f", "cx", "cy"),
    "FISHEYE": ("fx", "fy", "cx", "cy"),
    "SIMPLE_RADIAL_FISHEYE": ("f", "cx", "cy", "k1"),
    "RADIAL_FISHEYE": ("f", "cx", "cy", "k1", "k2"),
    "OPENCV_FISHEYE": ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4"),
    "THIN_PRISM_FISHEYE": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3", "k4", "sx1", "sy1"),
}
SHORTEST, LONGEST = 1e-6, 1e9  # limits of lengths in pixels; squares far outside them overflow or vanish
DEVIATIONS = "focal_deviation", "distortion_deviation"  # fields that state the uncertainty of a camera
# COLMAP's other camera models, and why they are refused.
REFUSED = {
    "EQUIRECTANGULAR": "it is panoramic; pass its rays to caransac.estimate_relative_pose_from_rays",
    "RAD_TAN_THIN_PRISM_FISHEYE": "its prism terms are not implemented; undistort the points with "
    "pycolmap.Camera.cam_from_img",
}


@dataclass(frozen=True)
class Camera:
    """A camera with a model and parameters of COLMAP.

    Attributes:
        model: one of SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, FULL_OPENCV, or one of the fisheye models
            FOV, SIMPLE_DIVISION, DIVISION, EUCM, SIMPLE_FISHEYE, FISHEYE, SIMPLE_RADIAL_FISHEYE, RADIAL_FISHEYE,
            OPENCV_FISHEYE, THIN_PRISM_FISHEYE. Estimation ignores matches more than 85 degrees off the optical axis of
            a fisheye camera.
        params: parameters of the model in COLMAP's order; lengths are in pixels.
        width: image width in pixels, or 0 if unknown. Estimation does not need it.
        height: image height in pixels, or 0 if unknown. Estimation does not need it.
        focal_deviation: relative standard deviation of the focal length: 0 (exact), or from 1e-9 to 1. For example,
            0.05 means that the focal length is known to five per cent. If it is not 0, estimation refines the focal
            length with the pose, and also moves the principal point a little. Fisheye cameras must be exact.
        distortion_deviation: standard deviation of k1, the first coefficient of radial distortion: 0 (exact), or from
            1e-9 to 1. If it is not 0, and if the matches constrain k1, estimation finds k1 with the pose. Only for
            pinholes, and for lenses whose other coefficients are zero.

    The principal point and the points of the image must use the same pixel convention.
    """

    model: str
    params: tuple[float, ...]
    width: int = 0
    height: int = 0
    focal_deviation: float = 0.0
    distortion_deviation: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or self.model not in PARAMETERS:
            reason = f": {REFUSED[self.model]}" if isinstance(self.model, str) and self.model in REFUSED else ""
            raise ValueError(f"model must be one of {', '.join(PARAMETERS)}, not {shorten(self.model)}{reason}")
        try:
            params = tuple(_as_number(value) for value in self.params)
        except (OverflowError, SystemError, TypeError, ValueError) as error:
            raise ValueError(f"params must be numbers, not {shorten(self.params)}") from error
        names = PARAMETERS[self.model]
        if len(params) != len(names):
            raise ValueError(f"params of {self.model} must be ({', '.join(names)}), got {len(params)} numbers")
        if not all(map(isfinite, params)):
            raise ValueError("params must be finite")
        object.__setattr__(self, "params", params)
        shorter = min(self.fx, self.fy)
        if shorter <= 0:
            raise ValueError("params must have a positive focal length")
        if shorter < SHORTEST or max(map(abs, params)) > LONGEST:
            raise ValueError(
                f"params must have a focal length of {SHORTEST:g} or more and no number beyond {LONGEST:g}"
            )
        for name in ("width", "height"):
            object.__setattr__(self, name, _as_pixels(getattr(self, name), name))
        check_deviation(self.focal_deviation)
        if self.is_fisheye and self.focal_deviation > 0:  # another focal length would bend its rays, not scale them
            raise ValueError(f"focal_deviation must be 0 for {self.model}: fisheye focal lengths are not refined")
        object.__setattr__(self, "focal_deviation", float(self.focal_deviation))
        check_deviation(self.distortion_deviation, "distortion_deviation")
        if self.distortion_deviation > 0 and not self.is_simple:
            raise ValueError(
                f"distortion_deviation must be 0 for this {self.model}: k1 is estimated only if the lens has no other "
                "coefficient"
            )
        object.__setattr__(self, "distortion_deviation", float(self.distortion_deviation))

    @classmethod
    def from_matrix(
        cls,
        K: ArrayLike,
        *,
        width: int = 0,
        height: int = 0,
        focal_deviation: float = 0.0,
        distortion_deviation: float = 0.0,
    ) -> Camera:
        """Return the pinhole camera of a 3x3 calibration matrix without skew. `Camera` explains the other arguments."""
        K = as_reals(K, "K")
        if K.shape != (3, 3):
            raise ValueError(f"K must be 3x3, got shape {K.shape}")
        (fx, skew, cx), (zero, fy, cy), (*zeros, one) = K.tolist()  # Python numbers, as numpy is slower for only nine
        largest = max(map(abs, (fx, skew, cx, zero, fy, cy, *zeros, one)))
        if max(map(abs, (skew, zero, *zeros, one - 1))) > 1e-9 * largest:
            raise ValueError("K must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
        return cls("PINHOLE", (fx, fy, cx, cy), width, height, focal_deviation, distortion_deviation)

    @classmethod
    def from_opencv(cls, K: ArrayLike, distortion: ArrayLike | None) -> Camera:
        """Return the camera of a 3x3 calibration matrix and OpenCV's distortion coefficients.

        The coefficients are (k1, k2, p1, p2[, k3[, k4, k5, k6]]). None, or an empty array, means no distortion.
        OpenCV's longer lists of 12 and 14 add thin prisms and tilted sensors; these extra coefficients must be zero.
        For the coefficients of cv2.fisheye, use the model OPENCV_FISHEYE.
        """
        pinhole = cls.from_matrix(K)
        k = np.zeros(0) if distortion is None else as_reals(distortion, "distortion").ravel()
        if k.size not in (0, 4, 5, 8, 12, 14):
            raise ValueError(f"distortion must have 4, 5, 8, 12 or 14 coefficients, got {k.size}")
        if np.any(k[8:]):
            raise ValueError(
                "distortion: thin prisms and tilted sensors are not supported; undistort the points first, with "
                "cv2.undistortPoints(points, cameraMatrix, distCoeffs, P=cameraMatrix)"
            )
        return cls("FULL_OPENCV", (*pinhole.params, *k[:8], *np.zeros(8 - k[:8].size)))

    @classmethod
    def of_unknown_focal(cls, width: int, height: int) -> Camera:
        """Return the camera to assume for an image if only its size is known, with large deviations."""
        width, height = as_size((_as_pixels(width, "width"), _as_pixels(height, "height")), "width and height")
        params = (UNKNOWN_FOCAL * max(width, height), (width - 1) / 2, (height - 1) / 2)
        return cls("SIMPLE_PINHOLE", params, width, height, UNKNOWN_FOCAL_DEVIATION, UNKNOWN_DISTORTION_DEVIATION)

    @classmethod
    def from_dict(cls, camera: Mapping[str, Any]) -> Camera:
        """Return the camera of a COLMAP-style dict with model and params.

        The keys width, height, focal_deviation and distortion_deviation are optional. The dict that
        ``pycolmap.Camera.todict()`` returns is accepted, too.
        """
        optional = ("width", "height", *DEVIATIONS)
        if not isinstance(camera, Mapping):
            raise ValueError(f"camera must be a dict of model, params, {', '.join(optional)}, not {shorten(camera)}")
        unknown = set(camera) - {"model", "params", *optional, "camera_id", "has_prior_focal_length"}
        missing = {"model", "params"} - set(camera)
        if unknown or missing:
            wrong = sorted(map(str, unknown | missing))
            raise ValueError(f"a camera dict has model, params, {', '.join(optional)}; check {wrong}")
        model = getattr(camera["model"], "name", camera["model"])  # pycolmap's is an enumerator
        return cls(str(model), camera["params"], *(camera.get(name, 0) for name in optional))

    def to_dict(self) -> dict[str, Any]:
        """Return the camera as a COLMAP-style dict of plain types, which `from_dict` reads back."""
        plain = {"model": self.model, "width": self.width, "height": self.height, "params": list(self.params)}
        deviations = {name: getattr(self, name) for name in DEVIATIONS}
        return plain | {name: deviation for name, deviation in deviations.items() if deviation}

    @classmethod
    def from_text(cls, text: str) -> Camera:
        """Return the camera of a text: ``f,cx,cy``, ``fx,fy,cx,cy`` or ``MODEL:WIDTHxHEIGHT:params``.

        For example, ``OPENCV:640x480:500,500,320,240,0.1,0,0,0``; the size is optional. The deviation of the focal
        length may follow: ``±5%``. A semicolon and the lens may come last: ``;k1=-0.05±0.02``, ``;k1±0.02`` or
        ``;k1=unknown``.
        """
        if not isinstance(text, str):
            raise ValueError(f"text must be a str, such as '1200,512,384', not {shorten(text)}")
        try:
            front_text, semicolon, lens_text = text.partition(";")
            lens = parse_lens(lens_text) if semicolon else (None, 0.0)
            plain_text, deviation = split_deviation(front_text)
            *front, numbers = plain_text.split(":")
            if len(front) > 2:
                raise ValueError("too many parts")
            params = tuple(float(number) for number in numbers.split(","))
            width, height = (int(n) for n in front[1].lower().split("x")) if len(front) == 2 else (0, 0)
        except ValueError as error:
            raise ValueError(
                f"camera {text!r} is not of the form f,cx,cy or fx,fy,cx,cy or MODEL:WIDTHxHEIGHT:params, followed "
                "by ±5% if the focal length is uncertain, and by ;k1±0.02 if the lens is uncertain"
            ) from error
        plain = {3: "SIMPLE_PINHOLE", 4: "PINHOLE"}
        if not front and len(params) not in plain:
            raise ValueError(
                f"camera {text!r} has {len(params)} numbers; expected f,cx,cy or fx,fy,cx,cy, or MODEL:params"
            )
        try:
            camera = cls(front[0].upper() if front else plain[len(params)], params, width, height, deviation)
            return camera.with_lens(camera.k1 if lens[0] is None else lens[0], lens[1]) if semicolon else camera
        except ValueError as error:
            raise ValueError(f"camera {text!r}: {error}") from error

    @property
    def fx(self) -> float:
        """Focal length along x in pixels."""
        return self.params[0]

    @property
    def fy(self) -> float:
        """Focal length along y in pixels."""
        return self.params[_centre_place(self.model) - 1]

    @property
    def intrinsics(self) -> tuple[float, float, float, float]:
        """Focal lengths and principal point in pixels: fx, fy, cx, cy."""
        return self.fx, self.fy, self.cx, self.cy

    @property
    def cx(self) -> float:
        """X coordinate of the principal point in pixels."""
        return self.params[_centre_place(self.model)]

    @property
    def cy(self) -> float:
        """Y coordinate of the principal point in pixels."""
        return self.params[_centre_place(self.model) + 1]

    @property
    def mean_focal(self) -> float:
        """Mean of the two focal lengths in pixels."""
        return 0.5 * (self.fx + self.fy)

    @property
    def K(self) -> Array:
        """Calibration matrix (3, 3), which ignores the distortion."""
        fx, fy, cx, cy = self.intrinsics
        return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])

    @property
    def is_distorted(self) -> bool:
        """Whether the lens is a fisheye or any distortion coefficient differs from zero."""
        return self.is_fisheye or any(self.params[_centre_place(self.model) + 2 :])

    @property
    def is_fisheye(self) -> bool:
        """Whether a function of `lens.PROJECTIONS`, not the tangent, maps the angle of a ray to its image radius."""
        return self.projection is not None

    @property
    def projection(self) -> tuple[Any, ...] | None:
        """Name in `lens.PROJECTIONS` and its parameters, or None for a pinhole with or without distortion."""
        if self.model.endswith("FISHEYE"):
            return ("FISHEYE",)
        name, numbers = self.model.removeprefix("SIMPLE_"), self.params[_centre_place(self.model) + 2 :]
        return (name, *numbers) if name in PROJECTIONS and numbers[0] != 0 else None  # at zero it is a pinhole

    @property
    def distortion(self) -> Distortion:
        """Distortion that the lens applies to rays or, for a fisheye, to their angles."""
        named = dict(zip(PARAMETERS[self.model], self.params, strict=True))
        if self.model == "FULL_OPENCV":  # its k4, k5 and k6 belong to the denominator
            named |= {"d1": named["k4"], "d2": named["k5"], "d3": named["k6"], "k4": 0.0}
        return Distortion(**{name: value for name, value in named.items() if name in Distortion.__dataclass_fields__})

    def pixels_to_rays(self, points: Array) -> Array:
        """Return the normalised image coordinates of pixels: (n, 2) -> (n, 2).

        They are NaN if the distortion has no inverse, or if a fisheye sees the ray beyond `lens.MAX_FISHEYE_ANGLE_DEG`.
        """
        fx, fy, cx, cy = self.intrinsics
        distorted = (points - (cx, cy)) / (fx, fy)
        if not self.is_distorted:
            return np.asarray(distorted)
        found = self.distortion.invert(distorted)
        return found if self.projection is None else unproject(found, *self.projection)

    def rays_to_pixels(self, rays: Array) -> Array:
        """Return the pixels of normalised image coordinates: (n, 2) -> (n, 2)."""
        fx, fy, cx, cy = self.intrinsics
        seen = rays if self.projection is None else project(rays, *self.projection)
        return np.asarray(self.distortion.apply(seen)[0] * (fx, fy) + (cx, cy))

    @property
    def exact(self) -> Camera:
        """The same camera with an exact focal length."""
        return self if self.focal_deviation == 0 else replace(self, focal_deviation=0.0)

    @property
    def pinhole(self) -> Camera:
        """Pinhole camera with the same calibration matrix."""
        return Camera("PINHOLE", self.intrinsics, self.width, self.height, self.focal_deviation)

    @property
    def k1(self) -> float:
        """First coefficient of radial distortion; 0 for a pinhole."""
        names = PARAMETERS[self.model]
        return self.params[names.index("k1")] if "k1" in names else 0.0

    @property
    def is_simple(self) -> bool:
        """Whether the lens is not a fisheye, and all its coefficients except k1 are zero."""
        names, others = PARAMETERS[self.model], self.params[_centre_place(self.model) + 2 :]
        return not self.is_fisheye and not any(others[1:] if "k1" in names else others)

    def with_lens(self, k1: float, deviation: float) -> Camera:
        """Return the camera with another k1 of this deviation: SIMPLE_RADIAL, or OPENCV if fx and fy differ."""
        if not self.is_simple:
            raise ValueError(f"the lens of this {self.model} has other coefficients than k1")
        fx, fy, cx, cy = self.intrinsics
        model, params = ("SIMPLE_RADIAL", (fx, cx, cy, k1)) if fx == fy else ("OPENCV", (fx, fy, cx, cy, k1, 0, 0, 0))
        if is_real(deviation) and deviation > 0:
            deviation = max(deviation, SMALLEST_DEVIATION)
        return Camera(model, params, self.width, self.height, self.focal_deviation, deviation)

    def adjusted(self, scale: float, offset_px: tuple[float, float], focal_deviation: float) -> Camera:
        """Return the camera with a scaled focal length, a moved principal point and another deviation."""
        change = {"cx": lambda v: v + offset_px[0], "cy": lambda v: v + offset_px[1]}
        change |= dict.fromkeys(("f", "fx", "fy"), lambda v: v * scale)
        names = PARAMETERS[self.model]
        params = tuple(change[name](v) if name in change else v for name, v in zip(names, self.params, strict=True))
        deviation = max(focal_deviation, SMALLEST_DEVIATION) if focal_deviation > 0 else focal_deviation
        return Camera(self.model, params, self.width, self.height, deviation, self.distortion_deviation)

    def undistort_pixels(self, points: Array) -> Array:
        """Remove lens distortion from pixels: (n, 2) -> (n, 2) pixels of `pinhole`, NaN if a pixel has no ray."""
        return self.pinhole.rays_to_pixels(self.pixels_to_rays(points)) if self.is_distorted else points


def mean_pixel(camera1: Camera, camera2: Camera) -> float:
    """Return the length of a pixel on the normalised image plane, 1 / focal length: the mean of two cameras."""
    return 0.5 * (1 / camera1.mean_focal + 1 / camera2.mean_focal)


def _centre_place(model: str) -> int:
    """Return the index of cx among the parameters: one or two focal lengths precede it."""
    return 1 if PARAMETERS[model][0] == "f" else 2


def _as_number(value: Any) -> float:
    """Return a number as a float. Raise a TypeError for other types that float() accepts, e.g. bool."""
    if isinstance(value, (bool, np.bool_, str, bytes, np.complexfloating)):
        raise TypeError(f"{value!r} is not a real number")
    return float(value)


def _as_pixels(value: Any, name: str) -> int:
    """Return a width or a height as an int."""
    if not is_real(value) or not 0 <= value <= LARGEST_SIDE or value != int(value):
        raise ValueError(
            f"{name} must be a whole number of pixels up to {LARGEST_SIDE}, 0 when unknown, not {shorten(value)}"
        )
    return int(value)

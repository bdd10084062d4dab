"""Cameras: from pixels to rays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from caransac._support.arrays import as_reals
from caransac.geometry import Array

# Parameters of each COLMAP camera model, in COLMAP's order.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "SIMPLE_PINHOLE": ("f", "cx", "cy"),
    "PINHOLE": ("fx", "fy", "cx", "cy"),
    "SIMPLE_RADIAL": ("f", "cx", "cy", "k1"),
    "RADIAL": ("f", "cx", "cy", "k1", "k2"),
    "OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2"),
    "FULL_OPENCV": ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
}
# The focal length of a camera of which nothing is known, in its longer side, and its relative deviation: phones have
# 0.7 to 0.85, most other lenses 0.6 to 1.2.
UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION = 0.85, 0.15
UNKNOWN_ZOOM_DEVIATION = 0.25  # where two images are known not to share a focal length: one of them may be zoomed
EXIF_FOCAL_DEVIATION = 0.04  # cameras round what they write down, focus and crop
SHORTEST, LONGEST = 1e-6, 1e9  # of anything, in pixels; far beyond, squares would overflow or vanish
DISTORTION = PARAMETERS["FULL_OPENCV"][4:]  # every coefficient there is; a model without one has it at zero


@dataclass(frozen=True)
class Camera:
    """A camera in COLMAP's terms.

    Attributes:
        model: one of SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, FULL_OPENCV.
        params: the model's parameters in COLMAP's order, lengths in pixels.
        width: image width in pixels, 0 when unknown; not needed for estimation.
        height: image height in pixels, 0 when unknown; not needed for estimation.
        focal_deviation: relative standard deviation of the focal length, from 0 (exact) to 1: 0.05 for one known to
            five per cent. Estimation then refines it, and the principal point a little, with the pose.

    The principal point is in the same pixel convention as the points that go with it.
    """

    model: str
    params: tuple[float, ...]
    width: int = 0
    height: int = 0
    focal_deviation: float = 0.0

    def __post_init__(self) -> None:
        if self.model not in PARAMETERS:
            raise ValueError(f"model must be one of {', '.join(PARAMETERS)}, not {self.model!r}")
        try:
            params = tuple(float(value) for value in self.params)
        except TypeError as error:
            raise ValueError(f"params must be numbers, not {self.params!r}") from error
        names = PARAMETERS[self.model]
        if len(params) != len(names):
            raise ValueError(f"params of {self.model} must be ({', '.join(names)}), got {len(params)} numbers")
        if not np.all(np.isfinite(params)):
            raise ValueError("params must be finite")
        object.__setattr__(self, "params", params)
        if self.fx <= 0 or self.fy <= 0:
            raise ValueError("params must have a positive focal length")
        if min(self.fx, self.fy) < SHORTEST or max(map(abs, params)) > LONGEST:
            raise ValueError(f"params must have a focal length from {SHORTEST:g} and no number beyond {LONGEST:g}")
        if not isinstance(self.focal_deviation, int | float | np.number) or not 0 <= self.focal_deviation <= 1:
            raise ValueError(f"focal_deviation must be from 0 (exact) to 1, not {self.focal_deviation!r}")
        object.__setattr__(self, "focal_deviation", float(self.focal_deviation))

    @classmethod
    def from_matrix(cls, K: ArrayLike, *, width: int = 0, height: int = 0, focal_deviation: float = 0.0) -> Camera:
        """Pinhole camera of a 3x3 calibration matrix without skew; see `Camera` for the rest."""
        K = as_reals(K, "K")
        if K.shape != (3, 3):
            raise ValueError(f"K must be 3x3, got shape {K.shape}")
        scale = float(np.abs(K).max())
        expected = np.array([[K[0, 0], 0, K[0, 2]], [0, K[1, 1], K[1, 2]], [0, 0, 1]])
        if not np.all(np.isfinite(K)) or not np.allclose(K, expected, rtol=0, atol=1e-9 * scale):
            raise ValueError("K must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
        return cls("PINHOLE", (K[0, 0], K[1, 1], K[0, 2], K[1, 2]), int(width), int(height), focal_deviation)

    @classmethod
    def of_unknown_focal(cls, width: int, height: int) -> Camera:
        """The camera to assume for an image of which nothing but the size is known, and a deviation that says so."""
        longer = max(width, height)
        params = (UNKNOWN_FOCAL * longer, (width - 1) / 2, (height - 1) / 2)
        return cls("SIMPLE_PINHOLE", params, width, height, UNKNOWN_FOCAL_DEVIATION)

    @classmethod
    def from_dict(cls, camera: Mapping[str, Any]) -> Camera:
        """Camera of a COLMAP-style dict with model and params, and optionally width, height and focal_deviation.

        What ``pycolmap.Camera.todict()`` returns is one too.
        """
        known = {"model", "params", "width", "height", "focal_deviation", "camera_id", "has_prior_focal_length"}
        unknown = set(camera) - known
        missing = {"model", "params"} - set(camera)
        if unknown or missing:
            raise ValueError(
                f"a camera dict has model, params, width, height, focal_deviation; check {sorted(unknown | missing)}"
            )
        model = getattr(camera["model"], "name", camera["model"])  # pycolmap's is an enumerator
        return cls(
            str(model),
            tuple(camera["params"]),
            int(camera.get("width", 0)),
            int(camera.get("height", 0)),
            camera.get("focal_deviation", 0.0),
        )

    def to_dict(self) -> dict[str, Any]:
        """The COLMAP-style dict of the camera: the inverse of `from_dict`, of plain types."""
        plain = {"model": self.model, "width": self.width, "height": self.height, "params": list(self.params)}
        return plain | ({"focal_deviation": self.focal_deviation} if self.focal_deviation else {})

    @classmethod
    def from_text(cls, text: str) -> Camera:
        """Camera of ``f,cx,cy``, ``fx,fy,cx,cy`` or ``MODEL:WIDTHxHEIGHT:params``, the size being optional.

        As in ``OPENCV:640x480:500,500,320,240,0.1,0,0,0``. A deviation of the focal length may follow, ``±5%``.
        """
        try:
            plain_text, deviation = split_deviation(text)
            *front, numbers = plain_text.split(":")
            params = tuple(float(number) for number in numbers.split(","))
            width, height = (int(n) for n in front[1].lower().split("x")) if len(front) == 2 else (0, 0)
        except ValueError as error:
            raise ValueError(
                f"camera {text!r} is not of the form f,cx,cy or fx,fy,cx,cy or MODEL:WIDTHxHEIGHT:params, with ±5% "
                "behind it where the focal length is doubtful"
            ) from error
        plain = {3: "SIMPLE_PINHOLE", 4: "PINHOLE"}
        if not front and len(params) not in plain:
            raise ValueError(
                f"camera {text!r} has {len(params)} numbers; want f,cx,cy or fx,fy,cx,cy, or name its model"
            )
        try:
            return cls(front[0].upper() if front else plain[len(params)], params, width, height, deviation)
        except ValueError as error:
            raise ValueError(f"camera {text!r}: {error}") from error

    def _parameter(self, *names: str) -> float:
        for name in names:
            if name in PARAMETERS[self.model]:
                return self.params[PARAMETERS[self.model].index(name)]
        return 0.0

    @property
    def fx(self) -> float:
        """Focal length along x in pixels."""
        return self._parameter("fx", "f")

    @property
    def fy(self) -> float:
        """Focal length along y in pixels."""
        return self._parameter("fy", "f")

    @property
    def mean_focal(self) -> float:
        """Mean of the two focal lengths in pixels."""
        return 0.5 * (self.fx + self.fy)

    @property
    def K(self) -> Array:
        """Calibration matrix (3, 3), without the distortion."""
        return np.array([[self.fx, 0, self._parameter("cx")], [0, self.fy, self._parameter("cy")], [0, 0, 1]])

    @property
    def is_distorted(self) -> bool:
        """Whether any distortion coefficient differs from zero."""
        return any(self._parameter(name) != 0 for name in DISTORTION)

    def pixels_to_rays(self, points: Array) -> Array:
        """Normalised image coordinates of pixels: (n, 2) -> (n, 2), NaN where the distortion has no inverse."""
        principal = np.array([self._parameter("cx"), self._parameter("cy")])
        distorted = (points - principal) / np.array([self.fx, self.fy])
        return self._undistort(distorted) if self.is_distorted else distorted

    def rays_to_pixels(self, rays: Array) -> Array:
        """Pixels of normalised image coordinates: (n, 2) -> (n, 2)."""
        principal = np.array([self._parameter("cx"), self._parameter("cy")])
        return np.asarray(self._distort(rays)[0] * np.array([self.fx, self.fy]) + principal)

    @property
    def pinhole(self) -> Camera:
        """The camera with the same calibration matrix and a perfect lens."""
        params = (self.fx, self.fy, self._parameter("cx"), self._parameter("cy"))
        return Camera("PINHOLE", params, self.width, self.height, self.focal_deviation)

    def adjusted(self, scale: float, offset_px: tuple[float, float], focal_deviation: float) -> Camera:
        """The camera with its focal length times `scale` and its principal point moved, of another deviation."""
        change = {"cx": lambda v: v + offset_px[0], "cy": lambda v: v + offset_px[1]}
        change |= dict.fromkeys(("f", "fx", "fy"), lambda v: v * scale)
        names = PARAMETERS[self.model]
        params = tuple(change[name](v) if name in change else v for name, v in zip(names, self.params, strict=True))
        return Camera(self.model, params, self.width, self.height, focal_deviation)

    def undistort_pixels(self, points: Array) -> Array:
        """Pixels in `pinhole` of what this camera sees at pixels: (n, 2) -> (n, 2), NaN where there is no ray."""
        return self.pinhole.rays_to_pixels(self.pixels_to_rays(points)) if self.is_distorted else points

    def _distort(self, rays: Array) -> tuple[Array, Array]:
        """Distorted coordinates (n, 2) and their derivatives by the undistorted ones (n, 2, 2)."""
        k1, k2, p1, p2, k3, k4, k5, k6 = (self._parameter(name) for name in DISTORTION)
        x, y = rays[:, 0], rays[:, 1]
        r2 = x * x + y * y
        divisor = 1 + r2 * (k4 + r2 * (k5 + r2 * k6))
        radial = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / divisor
        slope = k1 + r2 * (2 * k2 + r2 * 3 * k3) - radial * (k4 + r2 * (2 * k5 + r2 * 3 * k6))
        slope *= 2 / divisor  # d radial / dx = slope x
        distorted = np.stack(
            [x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x), y * radial + 2 * p2 * x * y + p1 * (r2 + 2 * y * y)],
            axis=1,
        )
        mixed = slope * x * y + 2 * p1 * x + 2 * p2 * y
        dxx = radial + slope * x * x + 2 * p1 * y + 6 * p2 * x
        dyy = radial + slope * y * y + 2 * p2 * x + 6 * p1 * y
        jacobian = np.stack([np.stack([dxx, mixed], axis=1), np.stack([mixed, dyy], axis=1)], axis=1)
        return distorted, jacobian

    def _fold_radius_sq(self) -> float:
        """Squared radius of the ray from which on the lens folds back: where the distorted radius stops growing."""
        k1, k2, k3, k4, k5, k6 = (self._parameter(f"k{i}") for i in range(1, 7))
        u, v, r2 = Polynomial((1, k1, k2, k3)), Polynomial((1, k4, k5, k6)), Polynomial((0, 1))
        # The derivative of r u(r^2) / v(r^2), times v^2. The roots of v are poles.
        growth = u * v + 2 * r2 * (u.deriv() * v - u * v.deriv())
        roots = np.concatenate([growth.trim().roots(), v.trim().roots()])
        real = roots[np.isreal(roots)].real
        return float(min(real[real > 0], default=np.inf))

    def _undistort(self, distorted: Array) -> Array:
        """Invert the distortion by Newton's method, a few steps even for strong lenses."""
        rays = distorted.copy()
        with np.errstate(all="ignore"):  # points beyond the lens's reach diverge and end as NaN
            for _ in range(20):
                value, jacobian = self._distort(rays)
                error = value - distorted
                if np.nanmax(np.abs(error), initial=0.0) < 1e-12:
                    break
                (a, b), (c, d) = np.moveaxis(jacobian, 0, -1)
                step = np.stack([d * error[:, 0] - b * error[:, 1], a * error[:, 1] - c * error[:, 0]], axis=1)
                rays = rays - step / (a * d - b * c)[:, None]
            far = np.sum(rays**2, axis=1) >= self._fold_radius_sq()
            failed = ~(np.abs(self._distort(rays)[0] - distorted).max(axis=1) < 1e-9) | far
        rays[failed] = np.nan
        return rays


def split_deviation(text: str) -> tuple[str, float]:
    """A text before ``±5%`` (or ``+-5%``, or ``±0.05``), and that deviation: 0 where there is none.

    Raises:
        ValueError: what follows is no number.
    """
    front, sign, behind = text.replace("+-", "±").partition("±")
    if not sign:
        return text, 0.0
    number = behind.strip()
    return front.strip(), float(number[:-1]) / 100 if number.endswith("%") else float(number)


def mean_pixel(camera1: Camera, camera2: Camera) -> float:
    """Length of a pixel on the normalised image plane, the inverse focal length: the mean of two cameras."""
    return 0.5 * (1 / camera1.mean_focal + 1 / camera2.mean_focal)


class DescribedCamera(Protocol):
    """A camera of another library that describes itself, such as pycolmap.Camera."""

    def todict(self) -> Mapping[str, Any]:
        """What `Camera.from_dict` takes."""


# What users have: a camera, a 3x3 calibration matrix, a COLMAP-style dict {model, params, width, height}, or an object
# with a method todict() that returns one.
CameraLike = Camera | ArrayLike | Mapping[str, object] | DescribedCamera


def as_camera(value: CameraLike, name: str) -> Camera:
    """Camera from what users have. Errors name the argument."""
    try:
        if isinstance(value, Camera):
            return value
        described = value if isinstance(value, Mapping) else _described(value)
        return Camera.from_matrix(cast(ArrayLike, value)) if described is None else Camera.from_dict(described)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _described(value: object) -> Mapping[str, Any] | None:
    """What an object says of itself by a method todict(), if it has one."""
    method = getattr(value, "todict", None)
    return method() if callable(method) else None

"""Cameras of a COLMAP database, their focal lengths, and the sources of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from caransac.api.camera_pooling import CameraEstimate
from caransac.camera import PARAMETERS, REFUSED, Camera
from caransac.camera_priors import EXIF_FOCAL_DEVIATION, check_deviation, usual_distortion
from caransac.verification.pair_records import CalibrationPolicy, CameraFocal, ImageSize

MODELS = (  # COLMAP's camera models, by number
    "SIMPLE_PINHOLE",
    "PINHOLE",
    "SIMPLE_RADIAL",
    "RADIAL",
    "OPENCV",
    "OPENCV_FISHEYE",
    "FULL_OPENCV",
    "FOV",
    "SIMPLE_RADIAL_FISHEYE",
    "RADIAL_FISHEYE",
    "THIN_PRISM_FISHEYE",
    "RAD_TAN_THIN_PRISM_FISHEYE",
    "SIMPLE_DIVISION",
    "DIVISION",
    "SIMPLE_FISHEYE",
    "FISHEYE",
    "EUCM",
    "EQUIRECTANGULAR",
)
UNKNOWN = CameraFocal(None, None, "unknown")


@dataclass(frozen=True)
class ColmapCamera:
    """A camera of the database.

    Attributes:
        stored: camera in the database; None if it is not needed or not readable.
        camera: camera for the verification; None if its focal length is unknown.
        focal: known focal length and its source.
        problem: reason why the camera cannot be used; empty if it can.
    """

    stored: Camera | None = None
    camera: Camera | None = None
    focal: CameraFocal = UNKNOWN
    problem: str = ""

    @property
    def size(self) -> ImageSize | None:
        """Size of the camera's images; None if it must not be used."""
        if self.stored is None or min(self.stored.width, self.stored.height) < 1:
            return None
        return self.stored.width, self.stored.height

    @property
    def awaits_pooling(self) -> bool:
        """Whether the focal length may be estimated from the camera's images."""
        return self.camera is None and self.size is not None

    def pooled(self, found: CameraEstimate) -> ColmapCamera:
        """Return the camera with the pooled focal length and lens, or the same camera if none was found."""
        if self.stored is None or found.focal_px is None or found.deviation is None:
            return self
        camera = self.stored.adjusted(found.focal_px / self.stored.mean_focal, (0.0, 0.0), found.deviation)
        if found.k1 is not None and found.k1_deviation is not None and camera.is_simple and camera.k1 == 0:
            camera = replace(camera, distortion_deviation=found.k1_deviation)
            if found.k1 != 0:
                camera = camera.with_lens(found.k1, found.k1_deviation)
        return replace(self, camera=camera, focal=CameraFocal(found.focal_px, found.deviation, "pooled"))


def read_cameras(
    rows: Iterable[tuple[Any, ...]],
    calibrated: CalibrationPolicy,
    focal_deviation: float | None,
    path: Path,
    *,
    strict: bool = True,
) -> dict[int, ColmapCamera]:
    """Read the cameras of a database. Return them by number.

    Args:
        rows: camera_id, model, width, height, params and prior_focal_length of each camera.
        calibrated: see `ColmapDatabase`.
        focal_deviation: relative deviation of prior focal lengths; None for the deviation of EXIF.
        path: path of the database, for messages.
        strict: whether to raise if a required camera cannot be read. Otherwise the camera gets a `problem`.

    Raises:
        ValueError: a required camera cannot be read, or the deviation contradicts the policy.
    """
    if focal_deviation is not None:
        check_deviation(focal_deviation)
    if focal_deviation is not None and focal_deviation > 0 and calibrated != "auto":
        raise ValueError(f"focal_deviation must be left out or 0 if calibrated is {calibrated!r}")
    prior_deviation = EXIF_FOCAL_DEVIATION if focal_deviation is None else focal_deviation
    cameras = {}
    for camera_id, *stored, prior in rows:
        try:
            cameras[camera_id] = _choose(camera_id, stored, bool(prior), calibrated, prior_deviation)
        except ValueError as error:
            if strict:
                raise ValueError(f"{path}: {error}") from error
            cameras[camera_id] = ColmapCamera(problem=str(error))
    return cameras


def _choose(
    camera_id: int, stored: Sequence[Any], prior: bool, calibrated: CalibrationPolicy, prior_deviation: float
) -> ColmapCamera:
    """Apply the calibration policy to a camera. Raise a ValueError if it is required but cannot be read."""
    if calibrated == "never":
        return ColmapCamera()
    if calibrated == "always":
        camera = read_camera(camera_id, *stored)
        return ColmapCamera(camera, camera, CameraFocal(camera.mean_focal, 0.0, "given"))
    if prior:
        camera = read_camera(camera_id, *stored)
        if not camera.is_fisheye:  # fisheye cameras are known exactly or not at all
            camera = replace(camera, focal_deviation=prior_deviation)
        if (
            prior_deviation > 0 and camera.is_simple and camera.k1 == 0
        ):  # COLMAP's initial value, not a measurement of the lens
            usual = usual_distortion(camera.mean_focal / max(camera.width, camera.height, 1))
            camera = replace(camera, distortion_deviation=usual)
        return ColmapCamera(camera, camera, CameraFocal(camera.mean_focal, camera.focal_deviation, "prior"))
    try:
        camera = read_camera(camera_id, *stored)
    except ValueError:  # the camera is not trusted anyway, so an unknown lens model is not an error
        return ColmapCamera()
    return ColmapCamera() if camera.is_fisheye else ColmapCamera(camera)


def read_camera(camera_id: int, model: int, width: int, height: int, params: bytes) -> Camera:
    """Create a camera from a row of the table. Raise a ValueError if its model is unknown or invalid."""
    name = MODELS[model] if model in range(len(MODELS)) else f"number {model}"
    if name not in PARAMETERS:
        raise ValueError(
            f"camera {camera_id} has model {name}, which caransac does not know ({REFUSED.get(name, 'it is new')}; it "
            f"knows {', '.join(PARAMETERS)}): undistort the images first, or use --calibrated never"
        )
    try:
        return Camera(name, tuple(np.frombuffer(params, "<f8")), width, height)
    except (TypeError, ValueError) as error:
        raise ValueError(f"corrupt camera {camera_id}: extract features again ({error})") from error

"""The cameras of a COLMAP database: what is known of their focal lengths, and from where."""

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

MODELS = (  # COLMAP's, by number
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
        stored: as the database has it; None where that does not matter, or cannot be read without a need for it.
        camera: as it is used; None where its focal length is unknown.
        focal: what is known of its focal length.
        problem: why it cannot be used; empty where it can.
    """

    stored: Camera | None = None
    camera: Camera | None = None
    focal: CameraFocal = UNKNOWN
    problem: str = ""

    @property
    def size(self) -> ImageSize | None:
        """Size of its images; None where it is not to be used."""
        if self.stored is None or min(self.stored.width, self.stored.height) < 1:
            return None
        return self.stored.width, self.stored.height

    @property
    def awaits_pooling(self) -> bool:
        """Whether its focal length may be found from its images."""
        return self.camera is None and self.size is not None

    def pooled(self, found: CameraEstimate) -> ColmapCamera:
        """The camera with focal length and lens that its pairs agree on; without any it stays as it is."""
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
    """The cameras by number.

    Args:
        rows: camera_id, model, width, height, params, prior_focal_length of each.
        calibrated: see `ColmapDatabase`.
        focal_deviation: relative, of prior focal lengths; None for that of EXIF.
        path: of the database, for messages.
        strict: raise where a camera that is to be trusted cannot be read; else it has a `problem`.

    Raises:
        ValueError: such a camera, or the deviation does not go with the policy.
    """
    if focal_deviation is not None:
        check_deviation(focal_deviation)
    if focal_deviation is not None and focal_deviation > 0 and calibrated != "auto":
        raise ValueError(f"focal_deviation must be left out or 0 where calibrated is {calibrated!r}")
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
    """A camera as the policy has it used; a ValueError if it cannot be read and must be."""
    if calibrated == "never":
        return ColmapCamera()
    if calibrated == "always":
        camera = read_camera(camera_id, *stored)
        return ColmapCamera(camera, camera, CameraFocal(camera.mean_focal, 0.0, "given"))
    if prior:
        camera = read_camera(camera_id, *stored)
        if not camera.is_fisheye:  # which are known exactly or not at all
            camera = replace(camera, focal_deviation=prior_deviation)
        if (
            prior_deviation > 0 and camera.is_simple and camera.k1 == 0
        ):  # COLMAP's start, which says nothing of the lens
            usual = usual_distortion(camera.mean_focal / max(camera.width, camera.height, 1))
            camera = replace(camera, distortion_deviation=usual)
        return ColmapCamera(camera, camera, CameraFocal(camera.mean_focal, camera.focal_deviation, "prior"))
    try:
        camera = read_camera(camera_id, *stored)
    except ValueError:  # its focal length is not to be trusted, so that a lens we do not know is no error
        return ColmapCamera()
    return ColmapCamera() if camera.is_fisheye else ColmapCamera(camera)


def read_camera(camera_id: int, model: int, width: int, height: int, params: bytes) -> Camera:
    """A camera of a row of the table; a ValueError where it is none that is known here."""
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

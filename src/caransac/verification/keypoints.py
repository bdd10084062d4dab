"""Keypoints of images, as their pairs need them: read and freed of lens distortion once for each image."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac.verification.pair_records import MatchIndices

Points = Floats | Array
ImageKey = TypeVar("ImageKey")

CACHED_IMAGES = 512  # whose keypoints are kept in memory: about 20 MB
# To remove the distortion of 8,000 keypoints takes 10 ms, as long as to verify a pair: worth 160 MB.
CACHED_UNDISTORTED = 2048


class KeypointCache(Generic[ImageKey]):
    """The keypoints of the images of a source, those used last in memory.

    Attributes:
        pixels: the pixels (n, 2) of an image's keypoints, as they are in the source.
        camera: an image's camera, None where it is unknown.
        matches_file: where the matches come from, for the message about one that cannot be.
    """

    def __init__(
        self,
        pixels: Callable[[ImageKey], Floats],
        camera: Callable[[ImageKey], Camera | None],
        matches_file: str | Path,
    ) -> None:
        self.pixels = lru_cache(CACHED_IMAGES)(pixels)
        self.camera, self.matches_file = camera, matches_file
        self._undistorted = lru_cache(CACHED_UNDISTORTED)(self._undistort)

    def matched(
        self, images: tuple[ImageKey, ImageKey], names: tuple[str, str], matches: MatchIndices
    ) -> tuple[Points, Points, tuple[Camera, Camera] | None]:
        """The points and cameras of `PairMatches`.

        Args:
            images: both images.
            names: their names.
            matches: (n, 2) indices of the matched keypoints.

        Returns:
            Pixels (n, 2) in image 1 and (n, 2) in image 2, and the cameras. Where both are known, points and cameras
            are free of distortion; else the pixels are as they were read, and there are no cameras.

        Raises:
            ValueError: a match names a keypoint that is not there.
        """
        camera1, camera2 = (self.camera(image) for image in images)
        cameras = None if camera1 is None or camera2 is None else (camera1.pinhole, camera2.pinhole)
        points = []
        for image, name, column in zip(images, names, matches.T, strict=True):
            keypoints = self.pixels(image) if cameras is None else self._undistorted(image)
            if len(column) and column.max() >= len(keypoints):
                raise ValueError(
                    f"{self.matches_file}: matches of {names[0]} and {names[1]} name keypoint {column.max()}, "
                    f"but {name} has {len(keypoints)}: its features were extracted again, so match again"
                )
            points.append(keypoints[column])
        return points[0], points[1], cameras

    def _undistort(self, image: ImageKey) -> Points:
        """Keypoints (n, 2) of an image in the pixels of a perfect lens; NaN where the distortion has no inverse."""
        pixels, camera = self.pixels(image), self.camera(image)
        return camera.undistort_pixels(pixels.astype(float)) if camera is not None and camera.is_distorted else pixels

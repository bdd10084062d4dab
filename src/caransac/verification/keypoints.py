"""Keypoints for pairs of images. Each image is read and undistorted only once."""

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

CACHED_IMAGES = 512  # number of images whose keypoints are kept in memory, about 20 MB
# Undistorting 8,000 keypoints takes 10 ms, as long as verifying a pair, so caching is worth 160 MB.
CACHED_UNDISTORTED = 2048
# Maximum number of matches of a pair, more than any matcher finds. A pair of so many takes less than 1 GB, because the
# verification needs a third of a kilobyte for each match.
MOST_MATCHES = 2_000_000


class KeypointCache(Generic[ImageKey]):
    """Cache of keypoints of the images of a source.

    Attributes:
        pixels: function that returns the pixels (n, 2) of an image's keypoints in the source.
        camera: function that returns an image's camera, or None if it is unknown.
        matches_file: path of the file of matches, for messages.
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
        """Return the points and cameras for `PairMatches`.

        Args:
            images: both images.
            names: their names.
            matches: (n, 2) indices of the matched keypoints.

        Returns:
            Pixels (n, 2) in image 1, pixels (n, 2) in image 2, and the cameras. If both cameras are known, points and
            cameras are undistorted. Otherwise the pixels are unchanged and the cameras are None.

        Raises:
            ValueError: a match refers to a keypoint that does not exist, or there are more than `MOST_MATCHES`.
        """
        if len(matches) > MOST_MATCHES:
            raise ValueError(
                f"{self.matches_file}: {names[0]} and {names[1]} have {len(matches)} matches, more than "
                f"{MOST_MATCHES}: match again"
            )
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
        """Undistort the keypoints (n, 2) of an image; NaN if the distortion cannot be inverted."""
        pixels, camera = self.pixels(image), self.camera(image)
        return camera.undistort_pixels(pixels.astype(float)) if camera is not None and camera.is_distorted else pixels

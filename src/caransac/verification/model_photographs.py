"""Photographs of a COLMAP model, in which the points of other images are refined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from caransac._support.files import as_path
from caransac.api.photographs import refine_points
from caransac.geometry import Array, rotation_from_quaternion
from caransac.io.images import Image, read_image
from caransac.result_parts import RefinedMatches
from caransac.verification.colmap_cameras import read_camera
from caransac.verification.colmap_model import PIXEL_CENTRE, ColmapModel
from caransac.verification.model_files import StoredImage, read_images

MOST_VIEWS = 3  # photographs with which a query is compared; others see the scene from too different directions
FEWEST_SHARED = 8  # minimum number of points that a photograph and the query share; their neighbours align the patches


@dataclass(frozen=True, eq=False)
class ModelPhotographs:
    """The photographs that a model was made from.

    Attributes:
        model: the model.
        folder: folder of the photographs.
        images: images of the model whose photographs are in the folder, by their numbers.
        read: function that reads a photograph by its path, and keeps the last ones for the next query.
    """

    model: ColmapModel
    folder: Path
    images: Mapping[int, StoredImage]
    read: Callable[[Path], Image] = field(default_factory=lambda: lru_cache(maxsize=MOST_VIEWS)(read_image))

    @classmethod
    def find(cls, model: ColmapModel, files: str | Path, folder: str | Path) -> ModelPhotographs:
        """Find the photographs of a model in a folder. `files` is the folder of the model's files.

        Raises:
            ValueError: none of the photographs is in the folder, or a file of the model is invalid.
            OSError: a file of the model is missing.
        """
        files, folder = as_path(files, "files"), as_path(folder, "folder")
        images = read_images(files)
        known = {
            number: image
            for number, image in images.items()
            if image.camera_id in model.cameras and _is_inside(folder, image.name)
        }
        if not known:
            raise ValueError(f"{folder} has none of the {len(images)} images of the model")
        return cls(model, folder, known)

    def refine(
        self, query: Image, points2d: Array, rows: NDArray[np.intp], chosen: NDArray[np.intp], deviation_px: float
    ) -> RefinedMatches:
        """Refine the points of a query image, each in the photographs that see its 3D point.

        The reference in a photograph is the projection of the 3D point. It is more precise than the keypoint, because
        it comes from the whole track. A point that was aligned with several photographs moves to their weighted mean.

        Args:
            query: (H, W, 3) or (H, W) uint8.
            points2d: (N, 2) pixels of the query in COLMAP's convention.
            rows: (N,) rows of the 3D points that match them.
            chosen: (k,) indices of the points to refine, most of which should be right.
            deviation_px: standard deviation of the points.
        """
        # The given points count with a deviation of a pixel: patches along an edge say nothing about one direction.
        total, weighted = np.tile(np.eye(2), (len(points2d), 1, 1)), points2d.copy()
        correlations = np.zeros(len(points2d))
        refined = np.zeros(len(points2d), bool)
        for image, seen in self._views(rows, chosen):
            places = self._project(image, self.model.points3d[rows[seen]])
            seen, places = seen[np.isfinite(places).all(axis=1)], places[np.isfinite(places).all(axis=1)]
            photographs = self.read(self.folder / image.name), query
            aligned = refine_points(photographs, places, points2d[seen] - PIXEL_CENTRE, deviation_px)
            found = seen[aligned.refined]
            information = aligned.information[aligned.refined]
            total[found] += information
            weighted[found] += np.einsum("nij,nj->ni", information, aligned.points2[aligned.refined] + PIXEL_CENTRE)
            correlations[found] = np.maximum(correlations[found], aligned.correlations[aligned.refined])
            refined[found] = True
        moved = points2d.copy()
        moved[refined] = np.linalg.solve(total[refined], weighted[refined][:, :, None])[:, :, 0]
        total[~refined] = 0
        return RefinedMatches(points2=moved, refined=refined, correlations=correlations, information=total)

    def _views(
        self, rows: NDArray[np.intp], chosen: NDArray[np.intp]
    ) -> Iterator[tuple[StoredImage, NDArray[np.intp]]]:
        """Yield the images that share most of the chosen points with the query, and the indices of these points."""
        observations = self.model.observations[np.isin(self.model.observations[:, 1], rows[chosen])]
        numbers, counts = np.unique(observations[:, 0], return_counts=True)
        best = [number for number in numbers[np.argsort(-counts, kind="stable")].tolist() if number in self.images]
        for number in best[:MOST_VIEWS]:
            seen = chosen[np.isin(rows[chosen], observations[observations[:, 0] == number, 1])]
            if len(seen) >= FEWEST_SHARED:
                yield self.images[number], seen

    def _project(self, image: StoredImage, points3d: Array) -> Array:
        """Project points (n, 3) to an image. Return pixels (n, 2), NaN for points behind the camera or outside."""
        camera, path = read_camera(*self.model.cameras[image.camera_id]), self.folder / image.name
        height, width = self.read(path).shape[:2]
        if (camera.width, camera.height) != (width, height):
            raise ValueError(
                f"{path} has {width} x {height} pixels, but the model's camera has {camera.width} x {camera.height}: "
                "give the photographs that the model was made from"
            )
        seen = points3d @ rotation_from_quaternion(image.quaternion).T + image.translation
        depths = np.where(seen[:, 2:] > 0, seen[:, 2:], np.nan)
        places = camera.rays_to_pixels(seen[:, :2] / depths) - PIXEL_CENTRE
        outside = (places < 0) | (places > np.array([width - 1, height - 1]))
        return np.where(outside.any(axis=1, keepdims=True), np.nan, places)


def _is_inside(folder: Path, name: str) -> bool:
    """Return True if a folder has the photograph of this name. Names are untrusted and must not lead out of it."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name and (folder / name).is_file()

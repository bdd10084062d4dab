"""Small synthetic scenes with known truth, for demonstrations and tests: point clouds, queries and planes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import LARGEST_SIDE, as_size, check_real, check_whole
from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac.options import ScoreKind

__all__ = ["PlanePair", "SyntheticPair", "SyntheticQuery", "make_pair", "make_plane", "make_query"]

MOST_POINTS = 10**7  # maximum number of points of a scene
RIGHT_PX = 3.0  # transfer error below which a match on a plane is right


@dataclass(frozen=True, eq=False)
class SyntheticPair:
    """Matches of two views of a synthetic scene, and the ground truth.

    Attributes:
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        camera1: camera of image 1.
        camera2: camera of image 2.
        scores: (n,) second-nearest-neighbour ratios (lower is better) or confidences (higher is better).
        R: (3, 3) true rotation, ``x2 = R x1 + t``.
        t: (3,) true translation, of length one.
        inliers: (n,) bool mask of the right matches.
        score_kind: kind of the scores.
    """

    points1: Array
    points2: Array
    camera1: Camera
    camera2: Camera
    scores: Array
    R: Array
    t: Array
    inliers: NDArray[np.bool_]
    score_kind: ScoreKind = "ratio"


@dataclass(frozen=True, eq=False)
class SyntheticQuery:
    """2D-3D matches of one camera, and the ground truth.

    Attributes:
        points2d: (n, 2) pixels.
        points3d: (n, 3) 3D points.
        camera: the camera.
        scores: (n,) second-nearest-neighbour ratios; lower is better.
        R: (3, 3) true rotation, ``x = R X + t``.
        t: (3,) true translation.
        inliers: (n,) bool mask of the right matches.
    """

    points2d: Array
    points3d: Array
    camera: Camera
    scores: Array
    R: Array
    t: Array
    inliers: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PlanePair:
    """Matches of two images of a plane, and the true homography.

    Attributes:
        name: name of the pair.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        scores: (n,) second-nearest-neighbour ratios; lower is better.
        H: (3, 3) true homography, ``x2 ~ H x1``.
        corners: (4, 2) pixels in image 1 at which the error of a homography is measured: corners of the plane or of the
            image.
        size1: width and height of image 1.
        size2: width and height of image 2.
    """

    name: str
    points1: Array
    points2: Array
    scores: Array
    H: Array
    corners: Array
    size1: tuple[int, int]
    size2: tuple[int, int]

    def right_matches(self) -> NDArray[np.bool_]:
        """Return the bool mask (n,) of the matches within `RIGHT_PX` of the true homography."""
        errors = np.linalg.norm(transfer(self.H, self.points1) - self.points2, axis=1)
        return np.asarray(errors < RIGHT_PX)

    def corner_error_px(self, H: Array | None) -> float:
        """Return the mean error in image 2 of the corners that a homography maps; infinity for None."""
        if H is None:
            return float("inf")
        errors = np.linalg.norm(transfer(H, self.corners) - transfer(self.H, self.corners), axis=1)
        return float(errors.mean()) if np.isfinite(errors).all() else float("inf")


def make_pair(
    num_points: int = 1000,
    outlier_ratio: float = 0.7,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    width: int = 1024,
    height: int = 768,
) -> SyntheticPair:
    """Make two views of a point cloud, with random outliers and ratio-like scores.

    Args:
        num_points: number of matches.
        outlier_ratio: fraction of wrong matches, 0 to 1.
        noise_px: standard deviation of the keypoint positions in pixels.
        seed: seed of the scene.
        width: image width in pixels.
        height: image height in pixels.
    """
    camera = _check_scene(num_points, outlier_ratio, noise_px, width, height)
    rng = np.random.default_rng(seed)
    size = np.array([camera.width, camera.height])
    R = rotation_from_vector(rng.uniform(-0.25, 0.25, 3))
    t = rng.normal(size=3) * (1, 1, 0.5)
    t /= np.linalg.norm(t)

    num_inliers = round(num_points * (1 - outlier_ratio))
    points1, points2 = np.empty((0, 2)), np.empty((0, 2))
    while len(points1) < num_inliers:  # points seen by both cameras, at depths of 3 to 12 baselines
        pixels = rng.uniform(0, 1, (4 * num_points, 2)) * size
        rays = np.c_[camera.pixels_to_rays(pixels), np.ones(len(pixels))]
        moved = rays * rng.uniform(3, 12, (len(pixels), 1)) @ R.T + t
        projected = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
        seen = (moved[:, 2] > 0) & np.all((projected >= 0) & (projected < size), axis=1)
        points1 = np.concatenate([points1, pixels[seen]])
        points2 = np.concatenate([points2, projected[seen]])
    outliers = rng.uniform(0, 1, (2, num_points - num_inliers, 2)) * size
    points1 = np.concatenate([points1[:num_inliers], outliers[0]])
    points2 = np.concatenate([points2[:num_inliers], outliers[1]])
    points1 += rng.normal(size=points1.shape) * noise_px
    points2 += rng.normal(size=points2.shape) * noise_px

    inliers = np.arange(num_points) < num_inliers
    scores = _draw_ratios(rng, inliers)
    order = rng.permutation(num_points)
    return SyntheticPair(points1[order], points2[order], camera, camera, scores[order], R, t, inliers[order])


def make_query(
    num_points: int = 500,
    outlier_ratio: float = 0.5,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    flat: bool = False,
    width: int = 1024,
    height: int = 768,
) -> SyntheticQuery:
    """Make an image of a point cloud or of a plane, with random outliers and ratio-like scores.

    Args:
        num_points: number of matches.
        outlier_ratio: fraction of wrong matches, 0 to 1.
        noise_px: standard deviation of the keypoint positions in pixels.
        seed: seed of the scene.
        flat: whether the points lie on an oblique plane.
        width: image width in pixels.
        height: image height in pixels.
    """
    camera = _check_scene(num_points, outlier_ratio, noise_px, width, height)
    rng = np.random.default_rng(seed)
    R, t = rotation_from_vector(rng.uniform(-1.5, 1.5, 3)), rng.normal(size=3) * 5
    pixels = rng.uniform(0, 1, (num_points, 2)) * (camera.width, camera.height)
    rays = homogeneous(camera.pixels_to_rays(pixels))
    depths = 6 / (rays @ (0.5, 0.3, 1.0)) if flat else rng.uniform(3, 12, num_points)
    space = (rays * depths[:, None] - t) @ R
    inliers = rng.random(num_points) >= outlier_ratio
    wrong = np.flatnonzero(~inliers)
    space[wrong] = space[rng.integers(num_points, size=len(wrong))]  # wrong matches: other points of the same scene
    scores = _draw_ratios(rng, inliers)
    pixels = pixels + noise_px * rng.normal(size=pixels.shape)
    return SyntheticQuery(pixels, space, camera, scores, R, t, inliers)


def make_plane(
    num_points: int = 1000,
    outlier_ratio: float = 0.7,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    width: int = 1024,
    height: int = 768,
) -> PlanePair:
    """Make two views of an oblique plane, with random outliers and ratio-like scores.

    The arguments are the same as those of `make_pair`.
    """
    camera = _check_scene(num_points, outlier_ratio, noise_px, width, height)
    rng = np.random.default_rng(seed)
    size = np.array([camera.width, camera.height])
    # The plane has inverse depth n . x on the ray x, so image 2 sees the ray R x + (n . x) t.
    normal, t = np.append(rng.uniform(-0.3, 0.3, 2), 1.0), rng.normal(size=3) * 0.2
    H = camera.K @ (rotation_from_vector(rng.uniform(-0.2, 0.2, 3)) + np.outer(t, normal)) @ np.linalg.inv(camera.K)
    points1 = rng.uniform(0, 1, (num_points, 2)) * size
    points2 = transfer(H, points1)
    wrong = np.flatnonzero(rng.random(num_points) < outlier_ratio)
    points2[wrong] = rng.uniform(0, 1, (len(wrong), 2)) * size
    inliers = np.ones(num_points, bool)
    inliers[wrong] = False
    return PlanePair(
        name=f"plane {seed}",
        points1=points1 + noise_px * rng.normal(size=points1.shape),
        points2=points2 + noise_px * rng.normal(size=points2.shape),
        scores=_draw_ratios(rng, inliers),
        H=H / np.linalg.norm(H),
        corners=np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) * size,
        size1=(camera.width, camera.height),
        size2=(camera.width, camera.height),
    )


def _check_scene(num_points: int, outlier_ratio: float, noise_px: float, width: int, height: int) -> Camera:
    """Check the arguments of a scene, and return its camera."""
    check_whole(num_points, "num_points", 0, MOST_POINTS)
    check_real(outlier_ratio, "outlier_ratio", 0, 1)
    check_real(noise_px, "noise_px", 0, LARGEST_SIDE)
    width, height = as_size((width, height), "width and height")
    return Camera("SIMPLE_PINHOLE", (0.9 * width, width / 2, height / 2), width, height)


def _draw_ratios(rng: np.random.Generator, inliers: NDArray[np.bool_]) -> Array:
    """Draw ratios (n,): right matches have any ratio, wrong ones mostly a ratio just below one."""
    return np.where(inliers, rng.beta(4, 2.5, len(inliers)), rng.beta(14, 1.2, len(inliers)))


def transfer(H: Array, points1: Array) -> Array:
    """Map points (n, 2) of image 1 by a homography (3, 3) into image 2: (n, 2)."""
    moved = homogeneous(points1) @ np.asarray(H, float).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(moved[:, :2] / moved[:, 2:])

"""Photographs of two textured planes with an exact pose, made without a renderer."""

from dataclasses import dataclass

import numpy as np

from caransac import Camera

SIZE = 480, 360  # width and height


class Texture:
    """A smooth random texture that can be evaluated anywhere, with structures of 4 to 30 pixels."""

    def __init__(self, rng, waves=60):
        angle, length = rng.uniform(0, 2 * np.pi, waves), rng.uniform(4, 30, waves)
        self.waves = 2 * np.pi * np.stack([np.cos(angle), np.sin(angle)]) / length
        self.phase, self.height = rng.uniform(0, 2 * np.pi, waves), length**0.5

    def __call__(self, points):
        """Return the grey levels (...) at points (..., 2)."""
        return 128 + 4 * np.sin(points @ self.waves + self.phase) @ self.height


@dataclass(frozen=True)
class Photographs:
    """Two photographs, their camera and pose, and matches: true ones, and the same with noise and outliers."""

    images: tuple
    camera: Camera
    R: np.ndarray
    t: np.ndarray
    H: np.ndarray
    points1: np.ndarray
    truth2: np.ndarray
    points2: np.ndarray
    is_right: np.ndarray

    @property
    def matches(self):
        return {"points1": self.points1, "points2": self.points2}

    @property
    def pose(self):
        return self.matches | {"camera1": self.camera, "camera2": self.camera}


def photograph(rng, num_points=400, noise_px=0.7, outlier_ratio=0.2, flat=False):
    """Photograph two planes that meet in the middle of image 1, or one plane if `flat`."""
    width, height = SIZE
    camera = Camera("SIMPLE_PINHOLE", (0.9 * width, (width - 1) / 2, (height - 1) / 2), width, height)
    K, texture = camera.K, Texture(rng)
    angles = np.radians([4.0, -9.0, 3.0])
    R = _rotation(angles)
    t = np.array([0.9, 0.1, 0.15])
    # Plane n^T X = 1 in the frame of camera 1; x2 ~ K (R + t n^T) K^-1 x1.
    normals = [np.array([0.1, 0.0, 0.2])] * 2 if flat else [np.array([0.12, 0.02, 0.2]), np.array([-0.12, -0.01, 0.2])]
    Hs = [K @ (R + np.outer(t, normal)) @ np.linalg.inv(K) for normal in normals]

    def side(points):  # the plane that is nearer is seen; both meet where their depths are equal
        depths = [1 / np.maximum(_rays(points, K) @ normal, 1e-6) for normal in normals]
        return np.argmin(depths, axis=0)

    rows, columns = np.mgrid[:height, :width]
    pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2).astype(float)
    image1, image2 = texture(pixels), np.zeros(len(pixels))
    for number, H in enumerate(Hs):
        back = _map(np.linalg.inv(H), pixels)
        seen = side(back) == number
        image2[seen] = texture(back[seen])
    images = tuple(np.clip(np.rint(each), 0, 255).astype(np.uint8).reshape(height, width) for each in (image1, image2))

    points1 = rng.uniform(12, (width - 12, height - 12), (4 * num_points, 2))
    which = side(points1)
    truth2 = np.where((which == 0)[:, None], _map(Hs[0], points1), _map(Hs[1], points1))
    inside = ((truth2 > 12) & (truth2 < np.array(SIZE) - 12)).all(axis=1)
    points1, truth2 = points1[inside][:num_points], truth2[inside][:num_points]
    points2 = truth2 + noise_px * rng.normal(size=truth2.shape)
    is_right = rng.random(len(points2)) >= outlier_ratio
    points2[~is_right] = rng.uniform(12, np.array(SIZE) - 12, (np.count_nonzero(~is_right), 2))
    return Photographs(images, camera, R, t / np.linalg.norm(t), Hs[0], points1, truth2, points2, is_right)


def _rays(points, K):
    return np.column_stack([points, np.ones(len(points))]) @ np.linalg.inv(K).T


def _map(H, points):
    moved = np.column_stack([points, np.ones(len(points))]) @ H.T
    return moved[:, :2] / moved[:, 2:]


def _rotation(angles):
    x, y, z = angles
    return (
        np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
        @ np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
        @ np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    )

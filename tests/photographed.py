"""A textured plane in several photographs with known homographies: files, keypoints with errors, and matches."""

import sqlite3
from itertools import combinations

import cv2
import h5py
import numpy as np
import pycolmap

from caransac.verification.colmap import MAX_IMAGES

SIZE = 320, 240  # width, height
WAVES = np.random.default_rng(5).normal(0, 0.25, (120, 2))  # frequencies of the texture in radians per pixel
PHASES = np.random.default_rng(6).uniform(0, 2 * np.pi, 120)
WRONG = 0.1  # share of wrong matches


def texture(points):
    """Return the grey levels of the plane at points (..., 2)."""
    return 128 + 9 * np.sin(points @ WAVES.T + PHASES).sum(axis=-1)


def transform(H, points):
    seen = points @ H[:, :2].T + H[:, 2]
    return seen[..., :2] / seen[..., 2:]


class Photographed:
    """Photographs of the plane.

    Attributes:
        H: homographies from the plane to the pixels of each photograph, whose first one has its centre at (0, 0).
        images: grey levels of the photographs.
        truth: (n, 2) pixels of the same points in each photograph.
        keypoints: these pixels with errors of the detector.
        matches: pairs of photographs with their matches (m, 2).
        wrong: pairs of photographs with a mask (m,) of wrong matches.
    """

    def __init__(self, count=5, points=250, error_px=0.6, seed=0):
        rng = np.random.default_rng(seed)
        world = rng.uniform([25, 25], [295, 215], (points, 2))
        grid = np.stack(np.meshgrid(*map(np.arange, SIZE)), axis=-1)
        self.H, self.images, self.truth, self.keypoints = [], [], [], []
        for _ in range(count):
            H = np.eye(3) + np.r_[rng.uniform(-0.06, 0.06, (2, 3)), rng.uniform(-1e-4, 1e-4, (1, 3))]
            H[:2, 2] = rng.uniform(-6, 6, 2)
            H /= H[2, 2]
            self.H.append(H)
            self.images.append(np.clip(texture(transform(np.linalg.inv(H), grid)), 0, 255).astype(np.uint8))
            self.truth.append(transform(H, world))
            self.keypoints.append(self.truth[-1] + rng.normal(0, error_px, (points, 2)))
        self.matches, self.wrong = {}, {}
        for pair in combinations(range(count), 2):
            second, wrong = np.arange(points), rng.random(points) < WRONG
            second[wrong] = np.roll(second[wrong], 1)
            self.matches[pair] = np.stack([np.arange(points), second], axis=1).astype(np.uint32)
            self.wrong[pair] = wrong

    def write_photographs(self, folder):
        folder.mkdir(exist_ok=True)
        for number, image in enumerate(self.images):
            cv2.imwrite(str(folder / f"{number}.png"), image)
        return folder

    def write_database(self, path, *, columns=4):
        """Write a database after verification. Its keypoints have more columns than the pixels."""
        pycolmap.Database.open(path).close()
        with sqlite3.connect(path) as connection:
            params = np.array([300.0, 160, 120])
            connection.execute("INSERT INTO cameras VALUES (1, 0, ?, ?, ?, 1)", (*SIZE, params))
            for number, points in enumerate(self.keypoints, 1):
                row = (number, f"{number - 1}.png")
                connection.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, 1)", row)
                rows = np.zeros((len(points), columns), np.float32)
                rows[:, :2], rows[:, 2:] = points + 0.5, 7
                command = "INSERT INTO keypoints VALUES (?, ?, ?, ?)"
                connection.execute(command, (number, len(rows), columns, rows.tobytes()))
            for (first, second), matches in self.matches.items():
                values = (MAX_IMAGES * (first + 1) + second + 1, len(matches), matches.tobytes())
                connection.execute("INSERT INTO matches VALUES (?, ?, 2, ?)", values)
                connection.execute(
                    "INSERT INTO two_view_geometries (pair_id, rows, cols, data, config) VALUES (?, ?, 2, ?, 6)", values
                )
        connection.close()
        return path

    def write_files(self, folder):
        """Write hloc's files: features in half precision, verified matches, and pairs."""
        with h5py.File(folder / "feats.h5", "w") as features:
            for number, points in enumerate(self.keypoints):
                features[f"{number}.png/keypoints"] = points.astype(np.float16)
                features[f"{number}.png/keypoints"].attrs["uncertainty"] = 1.5
                features[f"{number}.png/descriptors"] = np.ones((4, len(points)), np.float16)
                features[f"{number}.png/image_size"] = np.array(SIZE)
        with h5py.File(folder / "verified.h5", "w") as file:
            for (first, second), matches in self.matches.items():
                group = file.create_group(f"{first}.png/{second}.png")
                group["matches0"] = matches[:, 1].astype(np.int16)
                group.attrs.update(config="planar_or_panoramic", num_matches=len(matches), ms=1.0, settings=-1)
        (folder / "pairs.txt").write_text("".join(f"{a}.png {b}.png\n" for a, b in self.matches))
        return folder

    def disagreement(self, keypoints):
        """Return the median distance in pixels of the keypoints of a point from their mean, on the plane."""
        places = np.array([transform(np.linalg.inv(H), points) for H, points in zip(self.H, keypoints, strict=True)])
        return float(np.median(np.linalg.norm(places - places.mean(axis=0), axis=-1)))

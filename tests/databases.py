"""COLMAP databases of synthetic pairs: images 2i + 1 and 2i + 2 are pair i."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pycolmap

from caransac.geometry import rotation_from_vector
from caransac.synthetic import make_pair
from caransac.verification import ColmapDatabase, VerificationOptions, verify
from caransac.verification.colmap import MAX_IMAGES
from caransac.verification.colmap_cameras import MODELS

OLD_SCHEMA = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY, model INTEGER, width INTEGER, height INTEGER, params BLOB,
    prior_focal_length INTEGER);
CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT, camera_id INTEGER, prior_qw REAL);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB, config INTEGER,
    F BLOB, E BLOB, H BLOB);
"""


def some_pairs(count, num_points=200, outlier_ratio=0.4):
    return [make_pair(num_points, outlier_ratio, seed=seed) for seed in range(count)]


def pair_id(index):
    return MAX_IMAGES * (2 * index + 1) + 2 * index + 2


def make_database(path, pairs, *, prior=True, old=False):
    """Create a database in its state after matching, before verification."""
    if not old:
        pycolmap.Database.open(path).close()
    with sqlite3.connect(path) as connection:
        if old:
            connection.executescript(OLD_SCHEMA)
        for index, pair in enumerate(pairs):
            add_pair(connection, index, pair, prior)
    connection.close()
    return path


def make_collection(path, kind="around", *, count=7, focal=800.0, stored_focal=1228.8, prior=False):
    """Create a database of images of one camera, with all pairs matched and the focal length that COLMAP guesses.

    Returns:
        The path, and the pose (R, t) of each image. Images go around the scene, or ahead along their line of sight.
    """
    rng = np.random.default_rng(7)
    X = np.c_[rng.uniform(-3, 3, (500, 2)), rng.uniform(-2.5, 2.5, 500)]
    poses = [
        (rotation_from_vector(rng.normal(0, 0.25, 3) * [0.8, 1.6, 0.5]), np.r_[rng.normal(0, 0.2, 2), 6.5])
        if kind == "around"
        else (rotation_from_vector(rng.normal(0, 0.003, 3)), np.r_[rng.normal(0, 0.005, 2), 8.0 - 0.6 * number])
        for number in range(count)
    ]
    pycolmap.Database.open(path).close()
    with sqlite3.connect(path) as connection:
        params = np.array([stored_focal, 512, 384])
        connection.execute("INSERT INTO cameras VALUES (1, 0, 1024, 768, ?, ?)", (params, prior))
        for image, (R, t) in enumerate(poses, 1):
            seen = X @ R.T + t
            pixels = seen[:, :2] / seen[:, 2:] * focal + (512, 384) + rng.normal(0, 0.4, (500, 2))
            name = f"{image:02d}.png"
            connection.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, 1)", (image, name))
            connection.execute("INSERT INTO keypoints VALUES (?, 500, 2, ?)", (image, pixels.astype(np.float32)))
        for first, second in combinations(range(1, count + 1), 2):
            matches = np.stack([np.arange(500)] * 2, axis=1).astype(np.uint32)
            wrong = rng.random(500) < 0.25
            matches[wrong, 1] = rng.permutation(matches[wrong, 1])
            values = (MAX_IMAGES * first + second, len(matches), matches)
            connection.execute("INSERT INTO matches VALUES (?, ?, 2, ?)", values)
    connection.close()
    return path, poses


def add_pair(connection, index, pair, prior):
    rng = np.random.default_rng(index)
    columns = []
    for number, (points, camera) in enumerate(((pair.points1, pair.camera1), (pair.points2, pair.camera2)), 1):
        image = 2 * index + number
        values = (image, MODELS.index(camera.model), camera.width, camera.height, np.array(camera.params), prior)
        connection.execute("INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?)", values)
        name = f"scene/{image:03d}.png"
        connection.execute("INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, ?)", (image, name, image))
        # Keypoints are in random order, as in real databases, with scale and orientation.
        order = rng.permutation(len(points))
        keypoints = np.c_[points[order], np.ones(len(points)), np.zeros(len(points))].astype(np.float32)
        connection.execute("INSERT INTO keypoints VALUES (?, ?, 4, ?)", (image, len(points), keypoints))
        columns.append(np.argsort(order))
    matches = np.stack(columns, axis=1).astype(np.uint32)
    connection.execute("INSERT INTO matches VALUES (?, ?, 2, ?)", (pair_id(index), len(matches), matches))


def read_geometries(path):
    """Read all rows of two_view_geometries in order."""
    return query(path, "SELECT * FROM two_view_geometries ORDER BY pair_id")


def query(path, command):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(command).fetchall()
    finally:
        connection.close()


def execute(path, command, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(command, values)
    connection.close()


def verify_database(path, workers=2, options=VerificationOptions(), **given):  # noqa: B008  # frozen
    """Verify a database in threads. Return the geometries in the order of the pairs."""
    source, found = ColmapDatabase(path, **given), []
    with ThreadPoolExecutor(workers) as executor:
        verify(source, executor, options, on_batch=found.extend)
    source.close()
    return sorted(found, key=lambda geometry: geometry.key)

"""Noise-free minimal problems and full scenes with known truth."""

import numpy as np

from caransac import kernels
from caransac.geometry import cross_matrix, rotation_from_vector


def random_poses(rng, count, max_angle=0.5):
    axes = rng.normal(size=(count, 3))
    axes *= (rng.uniform(0, max_angle, count) / np.linalg.norm(axes, axis=1))[:, None]
    R = np.stack([rotation_from_vector(axis) for axis in axes])
    t = rng.normal(size=(count, 3))
    return R, t / np.linalg.norm(t, axis=1, keepdims=True)


def random_problems(rng, count, num_points):
    """Create `count` scenes of `num_points` points in front of both cameras: rays x1, x2, and R, t."""
    R, t = random_poses(rng, count)
    X = np.concatenate([rng.uniform(-2, 2, (count, num_points, 2)), rng.uniform(3, 9, (count, num_points, 1))], axis=2)
    Y = np.einsum("sij,smj->smi", R, X) + t[:, None]
    return X[..., :2] / X[..., 2:], Y[..., :2] / Y[..., 2:], R, t


def solve(solver, x1, x2):
    """Run a solver on samples (S, k, 2). Return its solutions, and the sample of each."""
    count, size, _ = x1.shape
    return solver(
        kernels.pack(x1.reshape(-1, 2), x2.reshape(-1, 2)), np.arange(count * size, dtype=np.int32).reshape(count, size)
    )


def essentials(R, t):
    return cross_matrix(t) @ R


def distance_up_to_sign(models, truth):
    """Return the largest absolute entry of the difference between matrices of equal norm, for the better sign."""
    return np.minimum(np.abs(models - truth).max((-2, -1)), np.abs(models + truth).max((-2, -1)))


def contaminated_scene(rng, num_points=400, outlier_ratio=0.4, noise=5e-4):
    """Create a scene with noise and outliers in normalised coordinates: x1, x2, R, t, inliers."""
    x1, x2, R, t = (array[0] for array in random_problems(rng, 1, num_points))
    inliers = np.arange(num_points) >= outlier_ratio * num_points
    x2 = x2 + rng.normal(size=x2.shape) * noise
    x2[~inliers] = rng.uniform(-1, 1, (int((~inliers).sum()), 2))
    return x1, x2, R, t, inliers

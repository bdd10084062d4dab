"""Share of poses inside the ellipsoids of their covariances, on synthetic and on real pairs.

A row of synthetic pairs has 200 pairs with Gaussian noise. They have exact cameras, or focal lengths and principal
points as uncertain as stated, or a lens of k1 = -0.1 that is passed as 0 with a deviation of 0.1. Wrong answers (15
degrees off) are excluded. For real pairs, only right answers (five degrees) count. Their lenses, cameras and true poses
are not exact, so errors are larger than noise explains. The ratios are median errors of the rotation or direction
divided by the median that the deviations imply for Gaussian errors. DIR has scenes in the layout of the RANSAC Tutorial
2020 (docs/formats.md).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac import Options
from caransac.geometry import (
    Array,
    direction_basis,
    homogeneous,
    pose_error_deg,
    rotation_from_vector,
    vector_from_rotation,
)
from caransac.results import RelativePoseResult
from caransac_lab.bench.publication import Content, data_name, percent, table
from caransac_lab.datasets import read_ransac_tutorial
from caransac_lab.synthetic.hard_scenes import CAMERA

NAME = "covariance"
PAIRS, QUICK_PAIRS = 200, 10
REAL_PAIRS = 30  # pairs per scene
K1, K1_DEVIATION = -0.1, 0.1
CHI_SQ = {0.5: 4.351, 0.95: 11.07}  # quantiles for five degrees of freedom
MEDIANS = (1.538**0.5, 1.177)  # median lengths of Gaussian vectors of three and two components with unit deviation
ROWS = (  # matches, share of wrong ones, noise in pixels, deviation of the focal length or None for a lens, method
    (30, 0.0, 0.5, 0.0, "ca-ransac"),
    (60, 0.0, 0.5, 0.0, "ca-ransac"),
    (200, 0.0, 0.5, 0.0, "ca-ransac"),
    (200, 0.3, 1.0, 0.0, "ca-ransac"),
    (600, 0.5, 0.5, 0.0, "ca-ransac"),
    (1000, 0.3, 0.3, 0.0, "ca-ransac"),
    (200, 0.0, 0.5, 0.05, "ca-ransac"),
    (600, 0.3, 0.5, 0.05, "ca-ransac"),
    (200, 0.0, 0.5, None, "ca-ransac"),
    (600, 0.3, 0.5, None, "ca-ransac"),
    (200, 0.3, 0.5, 0.0, "lm-lo-u"),
)
WRONG_DEG, RIGHT_DEG = 15.0, 5.0


def make_matches(
    rng: np.random.Generator, count: int, wrong: float, noise_px: float
) -> tuple[Array, Array, Array, Array]:
    """Create matches of a scene with depth, and its pose."""
    R, direction = rotation_from_vector(0.15 * rng.normal(size=3)), rng.normal(size=3) * (1, 0.6, 0.5)
    t, size = direction / np.linalg.norm(direction), (CAMERA.width, CAMERA.height)
    pixels = rng.uniform(0, 1, (30 * count, 2)) * size
    points = homogeneous(CAMERA.pixels_to_rays(pixels)) * np.exp(rng.uniform(-0.7, 0.7, (30 * count, 1)))
    moved = points @ R.T + 0.25 * t
    ahead = moved[:, 2] > 0.1
    pixels1, pixels2 = (CAMERA.rays_to_pixels(x[ahead, :2] / x[ahead, 2:]) for x in (points, moved))
    seen = np.flatnonzero(((pixels2 > 0) & (pixels2 < size)).all(axis=1))[:count]
    pixels1, pixels2 = (each[seen] + noise_px * rng.normal(size=(len(seen), 2)) for each in (pixels1, pixels2))
    others = round(len(seen) * wrong / (1 - wrong))
    pixels1, pixels2 = (np.concatenate([each, rng.uniform(0, 1, (others, 2)) * size]) for each in (pixels1, pixels2))
    return pixels1, pixels2, R, t


def bend(pixels: Array) -> Array:
    """Return pixels (n, 2) as seen through a lens."""
    rays = CAMERA.pixels_to_rays(pixels)
    return CAMERA.rays_to_pixels(rays * (1 + K1 * np.sum(rays**2, axis=1, keepdims=True)))


def measure(found: RelativePoseResult, R: Array, t: Array) -> tuple[float, float, float]:
    """Return the squared Mahalanobis distance of the truth, and rotation and direction errors / expected medians."""
    off = np.r_[vector_from_rotation(R @ found.R.T), direction_basis(found.t).T @ t]
    pose = found.covariance[:5, :5]
    deviations = np.radians([found.rotation_deviation_deg, found.direction_deviation_deg])
    rotation = np.linalg.norm(off[:3]) / (MEDIANS[0] * deviations[0] / 3**0.5)
    direction = np.linalg.norm(off[3:]) / (MEDIANS[1] * deviations[1] / 2**0.5)
    return float(off @ np.linalg.solve(pose, off)), float(rotation), float(direction)


def summary(measured: list[tuple[float, float, float]]) -> dict[str, Any]:
    """Return the figures of a row."""
    distances_sq, rotation, direction = np.array(measured).T
    inside = {f"inside_{share:g}": int((distances_sq < limit).sum()) for share, limit in CHI_SQ.items()}
    ratios = {"rotation": float(np.median(rotation)), "direction": float(np.median(direction))}
    return {"pairs": len(measured), **inside, **ratios}


def synthetic(num_pairs: int) -> dict[str, Any]:
    """Return the coverage for synthetic pairs."""
    rows = {}
    for count, wrong, noise_px, focal, method in ROWS:
        measured = []
        for index in range(num_pairs):
            rng = np.random.default_rng([count, round(100 * wrong), index])
            points1, points2, R, t = make_matches(rng, count, wrong, noise_px)
            if focal is None:
                points1, points2 = bend(points1), bend(points2)
            offset = 0.0025 * CAMERA.width * rng.normal(size=2)
            camera = CAMERA.adjusted(float(np.exp(-focal * rng.normal())), tuple(offset), focal) if focal else CAMERA
            if focal is None:
                camera = camera.with_lens(0.0, K1_DEVIATION)
            options = Options(method=method)
            found = caransac.estimate_relative_pose(points1, points2, camera, camera, same_camera=True, options=options)
            if found.success and pose_error_deg(found.R, found.t, R, t) < WRONG_DEG:
                measured.append(measure(found, R, t))
        cameras = f"focal length to {100 * focal:g} %" if focal else "exact cameras" if focal == 0 else "unknown lens"
        rows[f"{method}, {count} right matches, {wrong:.0%} wrong, {noise_px:g} px, {cameras}"] = summary(measured)
    return rows


def real(folders: list[Path], max_pairs: int | None) -> dict[str, Any]:
    """Return the coverage for real pairs."""
    rows = {}
    for folder in folders:
        measured = []
        for pair in read_ransac_tutorial(folder, max_pairs=max_pairs):
            given = {"scores": pair.scores, "score_kind": pair.score_kind}
            found = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, **given)
            if found.success and pose_error_deg(found.R, found.t, pair.R, pair.t) < RIGHT_DEG:
                measured.append(measure(found, pair.R, pair.t))
        rows[data_name(folder)] = summary(measured)
    return rows


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    parts = content["parts"]
    text = "# Covariances of poses\n\n`caransac-lab study covariance --help` explains the columns.\n"
    for part, rows in parts.items():
        text += f"\n## {part.capitalize()} pairs\n\n{coverage_table(rows)}"
    return text


def coverage_table(rows: dict[str, Any]) -> str:
    """Format the share of poses inside the ellipsoids of their covariances."""
    header = ("", "pairs", "in the 95 % ellipse, %", "in the 50 % ellipse, %", "rotation, ratio", "direction, ratio")
    lines = (
        [
            label,
            str(row["pairs"]),
            *(percent(row[f"inside_{share}"], row["pairs"]) for share in ("0.95", "0.5")),
            *(f"{row[name]:.2f}" for name in ("rotation", "direction")),
        ]
        for label, row in rows.items()
    )
    return table(header, lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--val", nargs="+", type=Path, default=[], metavar="DIR", help="real pairs")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    parts = {"synthetic": synthetic(QUICK_PAIRS if arguments.quick else PAIRS)}
    if arguments.val:
        parts["real"] = real(arguments.val, QUICK_PAIRS if arguments.quick else REAL_PAIRS)
    return {"parts": parts}

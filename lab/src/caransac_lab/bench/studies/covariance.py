"""Share of poses inside the ellipsoids of their covariances, on synthetic and on real pairs.

A row of synthetic pairs or queries has 200 of them, with Gaussian noise. They have exact cameras, or focal lengths and
principal points as uncertain as stated, or a lens of k1 = -0.1 that is passed as 0 with a deviation of 0.1. Queries
have matches of one image with 3D points, for absolute poses. Wrong answers (15 degrees off) are excluded. For real
pairs, only right answers (five degrees) count. Their lenses, cameras and true poses are not exact, so errors are larger
than noise explains. Rotations and translations (directions of relative poses) also have ellipses of their own. The
ratios are median errors of the rotation or translation divided by the median that the deviations imply for Gaussian
errors. DIR has scenes in the layout of the RANSAC Tutorial
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
    rotation_angle_deg,
    rotation_from_vector,
    vector_from_rotation,
)
from caransac.results import AbsolutePoseResult, RelativePoseResult
from caransac.synthetic import make_query
from caransac_lab.bench.publication import Content, data_name, percent, table
from caransac_lab.datasets import read_ransac_tutorial
from caransac_lab.synthetic.hard_scenes import CAMERA

NAME = "covariance"
PAIRS, QUICK_PAIRS = 200, 10
REAL_PAIRS = 30  # pairs per scene
K1, K1_DEVIATION = -0.1, 0.1
CHI_SQ = {  # quantiles by degrees of freedom
    0.5: {2: 1.386, 3: 2.366, 5: 4.351, 6: 5.348},
    0.95: {2: 5.991, 3: 7.815, 5: 11.07, 6: 12.59},
}
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
    (240, 0.4, 0.7, 0.0, "ca-ransac"),
    (240, 0.4, 2.0, 0.0, "ca-ransac"),
    (600, 0.6, 0.7, 0.0, "ca-ransac"),
    (600, 0.7, 2.0, 0.0, "ca-ransac"),
    (1600, 0.2, 2.0, 0.0, "ca-ransac"),
)
QUERIES = ((100, 0.2, 0.3), (100, 0.7, 2.0), (400, 0.4, 0.7), (2000, 0.2, 2.0), (2000, 0.7, 1.0))  # matches, wrong, px
WRONG_DEG, RIGHT_DEG = 15.0, 5.0
COLUMNS = (("poses", 95), ("poses", 50), ("rotations", 95), ("translations", 95))
NAMES = {"poses": "inside", "rotations": "rotation", "translations": "direction"}  # of the figures of a row
RATIOS = ("rotation, ratio", "translation, ratio")


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


def measure(found: RelativePoseResult | AbsolutePoseResult, R: Array, t: Array) -> list[tuple[int, float, float]]:
    """Return figures of the pose, of its rotation and of its translation.

    A figure has the degrees of freedom, the squared Mahalanobis distance of the truth, and the squared length of the
    error divided by the sum of the variances.
    """
    assert found.R is not None and found.t is not None and found.covariance is not None
    moved = direction_basis(found.t).T @ t if isinstance(found, RelativePoseResult) else t - found.t
    off, figures = np.r_[vector_from_rotation(R @ found.R.T), moved], []
    for part in (slice(len(off)), slice(3), slice(3, len(off))):
        covariance, error = found.covariance[part, part], off[part]
        figures.append((len(error), error @ np.linalg.solve(covariance, error), error @ error / np.trace(covariance)))
    return figures


def summary(measured: list[list[tuple[int, float, float]]]) -> dict[str, Any]:
    """Return the figures of a row."""
    pose, rotation, translation = (np.array(each) for each in zip(*measured, strict=True))

    def inside(part: Array, share: float) -> int:
        return int((part[:, 1] < CHI_SQ[share][int(part[0, 0])]).sum())

    def ratio(part: Array) -> float:  # the median of a Gaussian with equal variances
        return float(np.median(part[:, 2] * part[:, 0] / CHI_SQ[0.5][int(part[0, 0])]) ** 0.5)

    counts = {f"inside_{share:g}": inside(pose, share) for share in CHI_SQ}
    counts |= {"rotation_0.95": inside(rotation, 0.95), "direction_0.95": inside(translation, 0.95)}
    return {"pairs": len(measured), **counts, "rotation": ratio(rotation), "direction": ratio(translation)}


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


def queries(num_queries: int) -> dict[str, Any]:
    """Return the coverage for synthetic queries."""
    rows = {}
    for count, wrong, noise_px in QUERIES:
        measured = []
        for seed in range(num_queries):
            query = make_query(count, wrong, noise_px, seed)
            found = caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera)
            if found.success and rotation_angle_deg(query.R @ found.R.T) < WRONG_DEG:
                measured.append(measure(found, query.R, query.t))
        rows[f"absolute poses, {count} matches, {wrong:.0%} wrong, {noise_px:g} px"] = summary(measured)
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
    header = ("", "pairs", *(f"{what} in the {share} % ellipse, %" for what, share in COLUMNS), *RATIOS)
    lines = (
        [
            label,
            str(row["pairs"]),
            *(percent(row[f"{NAMES[what]}_{share / 100:g}"], row["pairs"]) for what, share in COLUMNS),
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
    count = QUICK_PAIRS if arguments.quick else PAIRS
    parts = {"synthetic": synthetic(count) | queries(count)}
    if arguments.val:
        parts["real"] = real(arguments.val, QUICK_PAIRS if arguments.quick else REAL_PAIRS)
    return {"parts": parts}

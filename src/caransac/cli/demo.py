"""caransac demo: the pose of an embedded example."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import caransac
from caransac import plot
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair
from caransac.types import Method


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="estimate the pose of a synthetic pair and draw its matches",
        description="Estimate the pose of a synthetic pair with 70 %% outliers by every method, print pose error, "
        "inliers and time, and draw the matches (needs matplotlib).",
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures (default: %(default)s)")
    parser.set_defaults(run=lambda arguments: demo(arguments.out))


def demo(out: Path) -> int:
    """Estimate the pose of a synthetic pair with 70 % outliers by every method, print a table, draw the matches."""
    pair = make_pair(num_points=1500, outlier_ratio=0.7, noise_px=0.7, seed=7)
    print(f"Synthetic pair: {len(pair.points1)} matches, {pair.inliers.sum()} of them right.\n")
    print(f"{'method':10}{'pose error':>12}{'inliers':>10}{'right ones':>12}{'hypotheses':>12}{'time':>10}")
    success = True
    for method in get_args(Method):
        result = caransac.estimate_relative_pose(
            pair.points1,
            pair.points2,
            pair.camera1,
            pair.camera2,
            scores=pair.scores,
            options=caransac.Options(method=method, early_stop=False),
        )
        if result.R is None or result.t is None:
            print(f"{method:10}failed: {result.stop_reason}")
            success = False
            continue
        error = pose_error_deg(result.R, result.t, pair.R, pair.t)
        found = int((result.inliers & pair.inliers).sum())
        print(
            f"{method:10}{error:10.3f} °{result.num_inliers:10}{found:12}{result.num_hypotheses:12}"
            f"{1e3 * result.elapsed_s:7.1f} ms"
        )
        try:
            picture = plot.draw_matches(
                out / f"{method}.png",
                pair.points1,
                pair.points2,
                result.inliers,
                size=(pair.camera1.width, pair.camera1.height),
                title=f"{method}: {result.num_inliers} inliers, pose error {error:.2f}°",
            )
        except ImportError as error_message:
            picture = None
            print(f"no picture: {error_message}")
    if success and picture is not None:
        print(f"\nPictures: {out.resolve()}")
    return 0 if success else 1

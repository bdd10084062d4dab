"""caransac demo: poses of built-in examples."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import get_args

import numpy as np

import caransac
from caransac import plot
from caransac.camera import Camera
from caransac.cli import pose
from caransac.cli.quiet import show
from caransac.geometry import pose_error_deg
from caransac.io import images
from caransac.options import MethodName
from caransac.synthetic import make_pair

# Two rendered photographs of a courtyard, their camera and their true pose: x2 = R x1 + t.
IMAGES = tuple(Path(__file__).parent / f"courtyard{number}.jpg" for number in (1, 2))
CAMERA = Camera("SIMPLE_PINHOLE", (864.0, 479.5, 359.5), 960, 720)
TRUTH = (
    np.array(
        [
            [0.8703529138892084, -0.04565640940014904, 0.4903073501032289],
            [0.015883790953833677, 0.9977773422042564, 0.06471538123773476],
            [-0.49217223658948833, -0.04853728118154563, 0.8691436140627188],
        ]
    ),
    np.array([-0.9340646098161108, -0.094244641475066, 0.34444339483043207]),
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="estimate the pose of a synthetic pair and of two rendered images",
        description="Estimate the pose of a synthetic pair with 70 % outliers by every method. Print pose error, "
        "inliers and time, and draw the flow of the matches (needs the extra 'plot'). Then run 'caransac pose' on two "
        "rendered photographs of a courtyard and write its report (needs the extra 'images'). No network is needed.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), metavar="DIR", help="folder for the pictures (default: %(default)s)"
    )
    parser.set_defaults(run=lambda arguments: demo(arguments.out))


def demo(out: Path) -> int:
    """Run the methods on synthetic matches and the command on images. Return 0 if all succeed."""
    done = [compare_methods(out), match_rendered_images(out)]
    if out.is_dir():
        print()
        show(f"Pictures: {out.resolve()}")
    return 0 if all(done) else 1


def compare_methods(out: Path) -> bool:
    """Estimate a synthetic pair with 70 % outliers by every method, print a table and draw the matches."""
    pair = make_pair(num_points=1500, outlier_ratio=0.7, noise_px=0.7, seed=7)
    size = pair.camera1.width, pair.camera1.height
    print(f"Synthetic pair: {len(pair.points1)} matches, {pair.inliers.sum()} of them right.\n")
    print(f"{'method':10}{'pose error':>12}{'inliers':>10}{'right ones':>12}{'hypotheses':>12}{'time':>10}")
    success = True
    for method in get_args(MethodName):
        result = caransac.estimate_relative_pose(
            pair.points1,
            pair.points2,
            pair.camera1,
            pair.camera2,
            scores=pair.scores,
            score_kind=pair.score_kind,
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
            plot.draw_flow(
                out / f"{method}.png",
                pair.points1,
                pair.points2,
                result.inliers if result.probabilities is None else result.probabilities,
                size1=size,
                title=f"{method}: {result.num_inliers} inliers, pose error {error:.2f}°",
            )
        except ImportError as error_message:
            print(f"no picture: {error_message}")
    return success


def match_rendered_images(out: Path) -> bool:
    """Copy the two images of the package and run `caransac pose` on them."""
    paths = out / "image1.png", out / "image2.png"
    try:
        for path, image in zip(paths, IMAGES, strict=True):
            images.write_image(path, images.read_image(image))
    except ImportError as error:
        print(f"\nno images: {error}")
        return True
    camera = ",".join(f"{value:g}" for value in CAMERA.params)
    command = ["pose", *map(str, paths), "--camera", camera, "--html", str(out / "report.html")]
    print(f"\nRendered images:\n\n$ {shlex.join(['caransac', *command])}")
    parser = argparse.ArgumentParser()
    pose.add_parser(parser.add_subparsers())
    success = pose.pose(parser.parse_args(command)) == 0
    print("The truth:")
    print(pose.format_pose(*TRUTH))
    return success

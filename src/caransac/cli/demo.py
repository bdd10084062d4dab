"""caransac demo: poses of built-in examples."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import numpy as np

import caransac
from caransac import plot
from caransac.camera import Camera
from caransac.cli import pose
from caransac.geometry import pose_error_deg
from caransac.io import images
from caransac.io.images import FeatureKind, Image
from caransac.synthetic import make_pair

KEYPOINTS: tuple[tuple[FeatureKind, int], ...] = (("orb", 2000), ("orb", 12000), ("rootsift", 2000))
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
        description="Estimate the pose of a synthetic pair with 70 % outliers, and draw the flow of its matches (needs "
        "the extra 'plot'). Then estimate the pose of two rendered photographs of a courtyard, from matches alone and "
        "from matches and photographs, and run 'caransac pose' on them, which writes its report (needs the extra "
        "'images'). No network is needed.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), metavar="DIR", help="folder for the pictures (default: %(default)s)"
    )
    parser.set_defaults(run=lambda arguments: demo(arguments.out))


def demo(out: Path) -> int:
    """Estimate from synthetic matches and from rendered images. Return 0 if all succeed."""
    done = [estimate_among_outliers(out), match_rendered_images(out)]
    if out.is_dir():
        print(f"\nPictures: {out.resolve()}")
    return 0 if all(done) else 1


def estimate_among_outliers(out: Path) -> bool:
    """Estimate a synthetic pair with 70 % outliers, print the result and draw the matches."""
    pair = make_pair(num_points=1500, outlier_ratio=0.7, noise_px=0.7, seed=7)
    result = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind=pair.score_kind
    )
    print(f"Synthetic pair: {len(pair.points1)} matches, {pair.inliers.sum()} of them right.")
    if result.R is None or result.t is None:
        print(f"failed: {result.stop_reason}")
        return False
    error = pose_error_deg(result.R, result.t, pair.R, pair.t)
    found = int((result.inliers & pair.inliers).sum())
    print(
        f"Pose error {error:.3f}°; {result.num_inliers} inliers, {found} of them right; confidence "
        f"{result.confidence:.3f}."
    )
    size = pair.camera1.width, pair.camera1.height
    shown = result.inliers if result.probabilities is None else result.probabilities
    title = f"{result.num_inliers} inliers, pose error {error:.2f}°"
    try:
        plot.draw_flow(out / "matches.png", pair.points1, pair.points2, shown, size1=size, title=title)
    except ImportError as error_message:
        print(f"no picture: {error_message}")
    return True


def match_rendered_images(out: Path) -> bool:
    """Estimate the pose of the two images of the package, and run `caransac pose` on copies of them."""
    paths = out / "image1.png", out / "image2.png"
    try:
        photographs = images.read_image(IMAGES[0]), images.read_image(IMAGES[1])
        for path, image in zip(paths, photographs, strict=True):
            images.write_image(path, image)
    except ImportError as error:
        print(f"\nno images: {error}")
        return True
    compare_with_photographs(*photographs)
    camera = ",".join(f"{value:g}" for value in CAMERA.params)
    command = ["pose", *map(str, paths), "--camera", camera, "--html", str(out / "report.html")]
    print(f"\nOn the command line, with more keypoints:\n\n$ {shlex.join(['caransac', *command])}")
    parser = argparse.ArgumentParser()
    pose.add_parser(parser.add_subparsers())
    success = pose.pose(parser.parse_args(command)) == 0
    print("The truth:")
    print(pose.format_pose(*TRUTH))
    return success


def compare_with_photographs(image1: Image, image2: Image) -> None:
    """Estimate the pose of the images from several sets of matches, alone and with the photographs. Print a table."""
    print("\nTwo rendered photographs, whose true pose is known:\n")
    print(f"{'':28}{'matches alone':^26}{'matches and photographs':^26}")
    columns = f"{'pose error':>12}{'noise':>10}{'':4}"
    print(f"{'keypoints':18}{'matches':>10}{columns}{columns}{'added time':>12}")
    for features, count in KEYPOINTS:
        points1, points2, ratios = images.match_images(image1, image2, features=features, max_features=count)
        line, times = f"{f'{count} of {features}':18}{len(points1):10}", []
        for given in (None, (image1, image2)):
            result = caransac.estimate_relative_pose(
                points1, points2, CAMERA, CAMERA, scores=ratios, score_kind="ratio", images=given
            )
            times.append(result.elapsed_s)
            if result.R is None or result.t is None or result.noise_px is None:
                line += f"{'failed':>22}{'':4}"
            else:
                line += f"{pose_error_deg(result.R, result.t, *TRUTH):10.3f} °{result.noise_px:7.2f} px{'':4}"
        print(f"{line}{1e3 * (times[1] - times[0]):9.1f} ms")

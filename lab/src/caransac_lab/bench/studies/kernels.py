"""Time the kernels and the whole estimate next to PoseLib, single-threaded, in one run.

make bench
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import poselib

import caransac
from caransac import kernels
from caransac.geometry import homogeneous
from caransac.kernels import POSES
from caransac.synthetic import make_pair

SAMPLES = 1024


def microseconds(call: Callable[[], object], per: int, repeats: int = 15) -> float:
    """Best time of several calls, in microseconds per item."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return 1e6 * best / per


def main() -> None:
    """Print the table."""
    pair = make_pair(num_points=2000, outlier_ratio=0.5, noise_px=0.5, seed=3)
    x1, x2 = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
    right = np.flatnonzero(pair.inliers)
    five, seven = (kernels.sample_uniform(right, size, SAMPLES, seed=0) for size in (5, 7))
    h1, h2 = homogeneous(x1)[five], homogeneous(x2)[five]
    print(f"instruction set {kernels.instruction_set()}, {SAMPLES} samples, {len(x1)} matches\n")

    points = kernels.pack(x1, x2)
    ours = microseconds(lambda: kernels.five_point(points, five), SAMPLES)
    theirs = microseconds(lambda: [poselib.essential_matrix_5pt(a, b) for a, b in zip(h1, h2, strict=True)], SAMPLES)
    print(f"five_point             {ours:8.2f} µs per sample   poselib {theirs:8.2f} µs   ratio {ours / theirs:.2f}")
    ours = microseconds(lambda: kernels.five_point_poses(points, five), SAMPLES)
    print(f"five_point_poses       {ours:8.2f} µs per sample")
    ours = microseconds(lambda: kernels.seven_point(points, seven), SAMPLES)
    print(f"seven_point            {ours:8.2f} µs per sample")

    poses, _ = kernels.five_point_poses(points, five)
    per_model = microseconds(lambda: POSES.top(poses, points, 1e-3, 4), len(poses))
    print(f"poses, top             {per_model:8.2f} µs per model")
    best = poses[POSES.top(poses, points, 1e-3, 64)]
    options = kernels.RefineOptions(loss_scale=1e-3, max_residual=2e-3)
    per_model = microseconds(lambda: POSES.refine(best, points, options), 64)
    print(f"poses, refine          {per_model:8.2f} µs per model")

    camera = {"model": "PINHOLE", "width": 1024, "height": 768}
    camera["params"] = [pair.camera1.fx, pair.camera1.fy, pair.camera1.K[0, 2], pair.camera1.K[1, 2]]
    ransac = {"max_iterations": SAMPLES, "min_iterations": SAMPLES, "max_epipolar_error": 1.0}
    told = caransac.Options(method="lm-lo-u", early_stop=False)
    ours = microseconds(
        lambda: caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, options=told),
        1,
    )
    theirs = microseconds(
        lambda: poselib.estimate_relative_pose(pair.points1, pair.points2, camera, camera, ransac, {}), 1
    )
    print(
        f"estimate, lm-lo-u      {ours / 1e3:8.2f} ms            "
        f"poselib {theirs / 1e3:8.2f} ms   ratio {ours / theirs:.2f}"
    )


if __name__ == "__main__":
    main()

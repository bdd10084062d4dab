"""Estimate the relative pose of two photographs with unknown cameras, or with focal lengths known to 5 %."""

from dataclasses import replace

import caransac
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair

pair = make_pair(num_points=1000, outlier_ratio=0.5, seed=3)  # use your own matches instead
matches = {"points1": pair.points1, "points2": pair.points2, "scores": pair.scores, "score_kind": "ratio"}
size = (1024, 768)  # width and height of the images
wrong = 1.05 * pair.camera1.fx  # a focal length that is five per cent too long
exact = caransac.Camera("SIMPLE_PINHOLE", (wrong, 511.5, 383.5), *size)
uncertain = replace(exact, focal_deviation=0.05)

print(f"true focal length {pair.camera1.fx:.1f} px")
for name, known in {
    "wrong, passed as exact": {"camera1": exact, "camera2": exact},
    "wrong, with its deviation": {"camera1": uncertain, "camera2": uncertain},
    "unknown": {"image_size1": size, "image_size2": size},
}.items():
    result = caransac.estimate_relative_pose(**matches, **known)
    if not result.is_confident():
        raise SystemExit(f"no reliable pose: {result}")
    camera = result.camera1
    print(
        f"{name:25s} {camera.fx:6.1f} px ± {100 * camera.focal_deviation:.1f} %, {result.num_inliers} inliers, "
        f"pose error {pose_error_deg(result.R, result.t, pair.R, pair.t):.2f} degrees"
    )

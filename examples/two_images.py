"""Estimate the pose of two images and draw it. The images are those of `caransac demo`; read yours with read_image."""

import sys
from pathlib import Path

import caransac
from caransac import plot
from caransac.cli.demo import CAMERA, IMAGES, TRUTH
from caransac.geometry import fundamental_from_essential, pose_error_deg
from caransac.io.images import match_images, read_image

image1, image2 = map(read_image, IMAGES)
points1, points2, ratios = match_images(image1, image2, max_features=2000)
result = caransac.estimate_relative_pose(
    points1,
    points2,
    CAMERA,
    CAMERA,
    scores=ratios,
    score_kind="ratio",
    images=(image1, image2),  # refines the matches
    options=caransac.Options(keep_trace=True),
)
if not result.is_confident():
    raise SystemExit(f"no reliable pose: {result}")
print(f"{result.num_inliers} inliers of {len(points1)} matches, confidence {result.confidence:.2f}")
print(f"{result.num_refined} matches refined: noise {result.noise_before_px:.2f} px, then {result.noise_px:.2f} px")
print(f"pose error {pose_error_deg(result.R, result.t, *TRUTH):.3f} degrees")

if len(sys.argv) > 1:  # a folder for pictures
    out = Path(sys.argv[1])
    images = {"image1": image1, "image2": image2}
    points2 = result.points2  # the refined points
    F = fundamental_from_essential(result.E, CAMERA.K, CAMERA.K)
    plot.draw_matches(out / "matches.png", points1, points2, result.probabilities, **images)
    plot.draw_epipolar_lines(out / "lines.png", F, points1[result.inliers], points2[result.inliers], **images)
    plot.draw_progression(out / "rounds.png", result, points1, image1=image1)

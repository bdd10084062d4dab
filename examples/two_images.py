"""From two images to a pose and its pictures. The images are rendered here; read_image reads yours."""

import sys
from pathlib import Path

import caransac
from caransac import plot
from caransac.geometry import fundamental_from_essential, pose_error_deg
from caransac.io.images import match_images
from caransac.render import render_pair

pair = render_pair(seed=1)
points1, points2, ratios = match_images(pair.image1, pair.image2, max_features=2000)
result = caransac.estimate_relative_pose(
    points1,
    points2,
    pair.camera,
    pair.camera,
    scores=ratios,
    score_kind="ratio",
    options=caransac.Options(keep_trace=True),
)
if not result.success:
    raise SystemExit(f"no pose: {result.stop_reason}")
print(f"{result.num_inliers} inliers of {len(points1)} matches, confidence {result.confidence:.2f}")
print(f"pose error {pose_error_deg(result.R, result.t, pair.R, pair.t):.3f} degrees")

if len(sys.argv) > 1:  # a folder for pictures
    out = Path(sys.argv[1])
    images = {"image1": pair.image1, "image2": pair.image2}
    F = fundamental_from_essential(result.E, pair.camera.K, pair.camera.K)
    plot.draw_matches(out / "matches.png", points1, points2, result.probabilities, **images)
    plot.draw_epipolar_lines(out / "lines.png", F, points1[result.inliers], points2[result.inliers], **images)
    plot.draw_progression(out / "rounds.png", result, points1, image1=pair.image1)

"""Estimate the homography of a plane, of which one match in ten is right, and carry its corners to the other image."""

import numpy as np

import caransac
from caransac.geometry import homogeneous
from caransac.synthetic import random_plane

pair = random_plane(np.random.default_rng(1), num_points=2000, inlier_ratio=0.1)  # stands in for your own matches
result = caransac.estimate_homography(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio")
if not result.success:
    raise SystemExit(f"no homography: {result.stop_reason}")
print(f"{result.num_inliers} inliers of {len(result.inliers)} matches, confidence {result.confidence:.3f}")
moved = homogeneous(pair.corners) @ result.H.T
print("corners in image 2:", (moved[:, :2] / moved[:, 2:]).round(1).tolist())
print(f"their mean error: {pair.corner_error_px(result.H):.2f} px")

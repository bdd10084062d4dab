"""Estimate the fundamental matrix of two uncalibrated images, from matches with a matcher's confidence."""

import numpy as np

import caransac
from caransac.geometry import sampson_sq
from caransac.synthetic import make_pair

pair = make_pair(num_points=800, outlier_ratio=0.5, seed=2)  # use your own matches instead
confidence = 1 - pair.scores  # higher is better
result = caransac.estimate_fundamental(pair.points1, pair.points2, scores=confidence, score_kind="confidence")
if not result.is_confident():
    raise SystemExit(f"no reliable fundamental matrix: {result}")
distance = np.sqrt(sampson_sq(result.F, pair.points1, pair.points2))
print("F =", result.F.tolist())
print(f"{result.num_inliers} inliers, median Sampson distance {np.median(distance[result.inliers]):.2f} px")

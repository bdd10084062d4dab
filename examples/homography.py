"""Estimate the homography of a plane from matches with 90 % outliers, and map its corners to the other image."""

import caransac
from caransac.geometry import homogeneous
from caransac.synthetic import make_plane

pair = make_plane(num_points=2000, outlier_ratio=0.9, seed=1)  # use your own matches instead
result = caransac.estimate_homography(pair.points1, pair.points2, scores=pair.scores, score_kind="ratio")
if not result.is_confident():
    raise SystemExit(f"no reliable homography: {result}")
print(f"{result.num_inliers} inliers of {len(result.inliers)} matches, confidence {result.confidence:.3f}")
moved = homogeneous(pair.corners) @ result.H.T
print("corners in image 2:", (moved[:, :2] / moved[:, 2:]).round(1).tolist())
print(f"their mean error: {pair.corner_error_px(result.H):.2f} px")

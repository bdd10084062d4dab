"""Estimate the absolute pose of a camera with an uncertain focal length."""

import caransac
from caransac.synthetic import make_query

query = make_query(num_points=500, outlier_ratio=0.6, seed=1)
camera = query.camera.adjusted(1.04, (0, 0), focal_deviation=0.05)  # 4 % too long; its deviation is 5 %

result = caransac.estimate_absolute_pose(
    query.points2d, query.points3d, camera, scores=query.scores, score_kind="ratio"
)

print(result)
print("camera centre", result.centre, "deviations", result.covariance.diagonal()[3:6] ** 0.5)
print("focal length", result.camera.mean_focal, "px, true", query.camera.mean_focal)
assert result.is_confident(0.9)

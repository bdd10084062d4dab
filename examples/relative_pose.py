"""Estimate the relative pose of two calibrated cameras from matches with many outliers."""

import caransac
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair

pair = make_pair(num_points=1000, outlier_ratio=0.7, seed=1)  # use your own matches instead
result = caransac.estimate_relative_pose(
    pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio"
)
if not result.is_confident():
    raise SystemExit(f"no reliable pose: {result}")
print("R =", result.R.round(4).tolist())
print("t =", result.t.round(4).tolist())
print(f"{result.num_inliers} inliers of {len(result.inliers)} matches in {1e3 * result.elapsed_s:.1f} ms")
print(f"pose error {pose_error_deg(result.R, result.t, pair.R, pair.t):.2f} degrees")

"""Estimate many pairs in threads. Pairs are read when they are needed; results have the order of the pairs."""

import caransac
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair

truth = []


def read_pairs():
    """Yield the arguments of `estimate_relative_pose` for each pair; replace this by reading your own matches."""
    for seed in range(20):
        pair = make_pair(num_points=500, outlier_ratio=0.6, seed=seed)
        truth.append(pair)
        yield {
            "points1": pair.points1,
            "points2": pair.points2,
            "camera1": pair.camera1,
            "camera2": pair.camera2,
            "scores": pair.scores,
            "score_kind": "ratio",
        }


results = caransac.estimate_relative_poses(read_pairs(), options=caransac.Options(seed=1))
for pair, result in zip(truth, results, strict=True):
    if result.is_confident():
        error = pose_error_deg(result.R, result.t, pair.R, pair.t)
        print(f"{result.num_inliers} inliers, confidence {result.confidence:.3f}, error {error:.2f} degrees")
    else:
        print(f"no reliable pose: {result}")

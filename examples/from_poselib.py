"""Use PoseLib's call with another import: it takes the same dicts and returns a pose and an info dict."""

from caransac.geometry import pose_error_deg
from caransac.integrations import poselib  # instead of: import poselib
from caransac.synthetic import make_pair

pair = make_pair(num_points=800, outlier_ratio=0.6, seed=4)  # use your own matches instead
camera = {"model": "SIMPLE_PINHOLE", "width": 1024, "height": 768, "params": list(pair.camera1.params)}
pose, info = poselib.estimate_relative_pose(pair.points1, pair.points2, camera, camera, {"max_epipolar_error": 1.0}, {})
if not info["success"]:  # as in PoseLib, the pose is then the identity
    raise SystemExit("no pose")
print(f"{info['num_inliers']} inliers after {info['iterations']} hypotheses, confidence {info['confidence']:.3f}")
print(
    f"q = {pose.q.round(4)}, t = {pose.t.round(4)}, error {pose_error_deg(pose.R, pose.t, pair.R, pair.t):.2f} degrees"
)

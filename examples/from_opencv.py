"""Use OpenCV's calls with another import: arguments and results stay the same. All other names are OpenCV's own."""

from caransac.integrations import opencv as cv2  # instead of: import cv2
from caransac.synthetic import make_pair

pair = make_pair(num_points=800, outlier_ratio=0.6, seed=3)  # use your own matches instead
K = pair.camera1.K
E, mask = cv2.findEssentialMat(pair.points1, pair.points2, K, method=cv2.RANSAC, prob=0.999, threshold=1.0)
if E is None:
    raise SystemExit("no essential matrix")
print("E =", E.round(4).tolist())
print(f"{mask.sum()} inliers of {len(mask)} matches, mask of shape {mask.shape} and type {mask.dtype}")

scores = {"scores": pair.scores, "score_kind": "ratio"}  # these arguments are new
F, mask = cv2.findFundamentalMat(pair.points1, pair.points2, cv2.RANSAC, 3.0, 0.99, **scores)
print(f"{mask.sum()} inliers of the fundamental matrix")

"""Write a report of an estimation: one HTML file with matches, epipolar lines and cameras, round by round."""

import tempfile
from pathlib import Path

import caransac
from caransac.synthetic import make_pair
from caransac.viewer import write_report

pair = make_pair(num_points=1000, outlier_ratio=0.7, seed=1)  # use your own matches instead
result = caransac.estimate_relative_pose(
    pair.points1,
    pair.points2,
    pair.camera1,
    pair.camera2,
    scores=pair.scores,
    score_kind="ratio",
    options=caransac.Options(keep_trace=True, early_stop=False),  # a record of every round
)
path = write_report(
    Path(tempfile.mkdtemp()) / "report.html",
    result,
    pair.points1,
    pair.points2,
    camera1=pair.camera1,
    camera2=pair.camera2,
    scores=pair.scores,  # and image1, image2 if you have them
    title="A synthetic pair",
)
print(f"{result.num_inliers} inliers; open {path}")

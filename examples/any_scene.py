"""One call for any scene: a pose where the matches tell it, else what they do tell: a homography, a rotation, or F."""

import numpy as np

import caransac
from caransac.synthetic.hard_scenes import make_hard_pair

for scene in ("depth", "plane", "rotation"):
    pair = make_hard_pair(scene, np.random.default_rng(0), outlier_ratio=0.3)  # stands in for your own matches
    result = caransac.estimate(pair.points1, pair.points2, pair.camera, pair.camera)
    print(f"{scene}: {result.kind}, because {result.reason}")
    print(f"  {result.num_inliers} inliers of {len(result.inliers)} matches, confidence {result.confidence:.3f}")
    print(f"  threshold {result.max_error_px:.2f} px, found with a noise of {result.noise_px:.2f} px")
    for R, t in result.alternatives:  # the poses that explain a plane equally well
        print(f"  possible pose: R = {R.round(3).tolist()}, t = {t.round(3).tolist()}")

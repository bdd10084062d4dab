"""Estimate the geometry of any scene: a pose if the matches determine it, else a homography, a rotation or F."""

import numpy as np

import caransac
from caransac.geometry import homogeneous, rotation_from_vector
from caransac.synthetic import make_pair, make_plane

depth, plane = make_pair(outlier_ratio=0.3), make_plane(outlier_ratio=0.3)  # use your own matches instead
camera = depth.camera1
rays = homogeneous(camera.pixels_to_rays(depth.points1)) @ rotation_from_vector([0.05, 0.15, 0.0]).T
turned = camera.rays_to_pixels(rays[:, :2] / rays[:, 2:]) + np.random.default_rng(0).normal(size=(len(rays), 2)) / 2
scenes = {
    "depth": (depth.points1, depth.points2),
    "plane": (plane.points1, plane.points2),
    "rotation": (depth.points1, turned),
}
for scene, (points1, points2) in scenes.items():
    result = caransac.estimate(points1, points2, camera.K, camera.K)
    print(f"{scene}: {result.kind}, because {result.reason}")
    print(f"  {result.num_inliers} inliers of {len(result.inliers)} matches, confidence {result.confidence:.3f}")
    print(f"  threshold {result.max_error_px:.2f} px, noise {result.noise_px:.2f} px")
    for R, t in result.alternatives:  # the poses that explain a plane equally well
        print(f"  possible pose: R = {R.round(3).tolist()}, t = {t.round(3).tolist()}")

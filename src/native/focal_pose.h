// Relative poses of cameras whose focal lengths and principal points are only approximately known.
#pragma once

#include "hot/points.h"
#include "pose.h"

namespace caransac {

// A camera relative to the one that normalised the points: a normalised point (u, v) corresponds to the ray ((u - x) /
// scale, (v - y) / scale, 1). scale = exp(log_scale) is the true focal length divided by the assumed one.
struct Intrinsics {
    double log_scale = 0, x = 0, y = 0;
    Matrix3 inverse() const;  // inverse of [[scale, 0, x], [0, scale, y], [0, 0, 1]]
};

struct FocalPose {
    Pose pose;
    Intrinsics camera1, camera2;
};

// Layout in Python: 18 numbers, the rows of [R | t | a1 | a2] with a = (log_scale, x, y) of each camera.
FocalPose read_focal_pose(const double* from);
void write_focal_pose(const FocalPose& model, double* to);

// A2^-T [t]x R A1^-1, so that points satisfy x2^T M x1 = 0.
Matrix3 matrix_of(const FocalPose& model);

Rays rays_of(const FocalPose& model);

}  // namespace caransac

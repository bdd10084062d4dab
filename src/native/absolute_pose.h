// Absolute poses: x = R X + t for 3D points, seen by a camera whose intrinsics may be uncertain.
#pragma once

#include "focal_pose.h"
#include "hot/reprojection.h"

namespace caransac {

// The camera is relative to the one that normalised the points, as in FocalPose. Its lens first moves a ray (x, y, 1)
// to (1 + k1 r^2) (x, y).
struct AbsolutePose {
    Pose pose;  // the translation may have any length
    Intrinsics camera;
    double k1 = 0;
    Projection projection() const;
};

// Layout in Python: the rows of [R | t], or of [R | t | a | b] with a = (log_scale, x, y) and b = (k1, 0, 0).
AbsolutePose read_absolute_pose(const double* from, int columns);
void write_absolute_pose(const AbsolutePose& model, int columns, double* to);

}  // namespace caransac

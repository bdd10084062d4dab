// Poses of cameras that see a plane, from its homography.
#pragma once

#include <vector>

#include "pose.h"

namespace caransac {

// Up to two poses of a homography of rays, with most points of image 1 in front of the camera; none for a rotation. Ma,
// Soatto, Kosecka and Sastry, "An Invitation to 3-D Vision", 2004, section 5.3.3.
std::vector<Pose> poses_from_homography(const Matrix3& homography, const Columns<double>& points);

}  // namespace caransac

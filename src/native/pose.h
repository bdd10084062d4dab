// Relative poses: x2 = R x1 + t with |t| = 1, E = [t]x R.
#pragma once

#include <vector>

#include <Eigen/Core>

#include "hot/points.h"

namespace caransac {

using Matrix3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
using Vector3 = Eigen::Vector3d;

struct Pose {
    Matrix3 rotation;
    Vector3 translation;
};

// Layout of poses in Python: 12 numbers, the rows of [R | t].
Pose read_pose(const double* from);
void write_pose(const Pose& pose, double* to);

Rays rays_of(const Pose& pose);

Matrix3 cross_matrix(const Vector3& t);
Matrix3 essential_from_pose(const Pose& pose);

// The rotation nearest to a matrix.
Matrix3 nearest_rotation(const Matrix3& matrix);

// The same for a rotation with rounding errors; cheaper.
Matrix3 rotation_near(const Matrix3& rotation);

// The mean of similar poses with weights that are not all zero; its translation has unit length.
Pose mean_pose(const std::vector<Pose>& poses, const std::vector<double>& weights);

}  // namespace caransac

#include "plane_poses.h"

#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <utility>

#include "spreads.h"

namespace caransac {
namespace {

Eigen::Matrix3d columns_of(const Vector3& first, const Vector3& second) {
    Eigen::Matrix3d columns;
    columns << first, second, first.cross(second);
    return columns;
}

// The nearest rotation to a matrix that rounding has changed.
Matrix3 nearest_rotation(const Eigen::Matrix3d& matrix) {
    const Eigen::JacobiSVD<Eigen::Matrix3d> svd(matrix, Eigen::ComputeFullU | Eigen::ComputeFullV);
    return svd.matrixU() * svd.matrixV().transpose();
}

// The side, 1 or -1, of a plane through the centre of camera 1 with the given normal that has most points.
double side_of(const Vector3& normal, const Columns<double>& points) {
    std::vector<double> heights;
    for (int i = 0; i < points.n; ++i)
        heights.push_back(normal.x() * points.u1[i] + normal.y() * points.v1[i] + normal.z());
    return heights.empty() || median(std::move(heights)) >= 0 ? 1 : -1;
}

}  // namespace

std::vector<Pose> poses_from_homography(const Matrix3& homography, const Columns<double>& points) {
    std::vector<Pose> poses;
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> squares(homography.transpose() * homography);
    const Vector3 values = squares.eigenvalues();  // ascending
    const double low = values[0] / values[1], high = values[2] / values[1];
    if (!(values[1] > 0) || !(high - low >= 1e-9)) return poses;
    const Eigen::Matrix3d h = homography * ((homography.determinant() < 0 ? -1 : 1) / std::sqrt(values[1]));
    const Vector3 smallest = squares.eigenvectors().col(0), middle = squares.eigenvectors().col(1),
                  largest = squares.eigenvectors().col(2);
    for (const double sign : {1.0, -1.0}) {
        // Directions in the plane keep their lengths and angles: h rotates them like the camera.
        const Vector3 u =
            (std::sqrt(std::max(1 - low, 0.0)) * largest + sign * std::sqrt(std::max(high - 1, 0.0)) * smallest) /
            std::sqrt(high - low);
        const Vector3 normal = middle.cross(u);
        const Eigen::Matrix3d rotation = columns_of(h * middle, h * u) * columns_of(middle, u).transpose();
        const Vector3 translation = (h - rotation) * normal;
        if (!(translation.norm() >= 1e-9)) continue;
        poses.push_back({nearest_rotation(rotation), side_of(normal, points) * translation.normalized()});
    }
    return poses;
}

}  // namespace caransac

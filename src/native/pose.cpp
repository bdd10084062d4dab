#include "pose.h"

#include <algorithm>
#include <cstddef>

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <Eigen/SVD>

namespace caransac {

Pose read_pose(const double* from) {
    const Eigen::Map<const Eigen::Matrix<double, 3, 4, Eigen::RowMajor>> rows(from);
    return {rows.leftCols<3>(), rows.col(3)};
}

void write_pose(const Pose& pose, double* to) {
    Eigen::Map<Eigen::Matrix<double, 3, 4, Eigen::RowMajor>> rows(to);
    rows << pose.rotation, pose.translation;
}

Rays rays_of(const Pose& pose) {
    Rays rays;
    std::copy_n(pose.rotation.data(), 9, rays.first);
    std::copy_n(pose.translation.data(), 3, rays.translation);
    return rays;
}

Matrix3 cross_matrix(const Vector3& t) {
    Matrix3 m;
    m << 0, -t.z(), t.y(), t.z(), 0, -t.x(), -t.y(), t.x(), 0;
    return m;
}

Matrix3 essential_from_pose(const Pose& pose) { return cross_matrix(pose.translation) * pose.rotation; }

Matrix3 nearest_rotation(const Matrix3& matrix) {
    const Eigen::JacobiSVD<Eigen::Matrix3d> svd(matrix, Eigen::ComputeFullU | Eigen::ComputeFullV);
    const Eigen::Matrix3d turn = svd.matrixU() * svd.matrixV().transpose();
    return svd.matrixU() * Vector3(1, 1, turn.determinant()).asDiagonal() * svd.matrixV().transpose();
}

Matrix3 rotation_near(const Matrix3& rotation) {
    return Eigen::Quaterniond(Eigen::Matrix3d(rotation)).normalized().toRotationMatrix();
}

Pose mean_pose(const std::vector<Pose>& poses, const std::vector<double>& weights) {
    Matrix3 rotation = Matrix3::Zero();
    Vector3 translation = Vector3::Zero();
    for (size_t i = 0; i < poses.size(); ++i) {
        rotation += weights[i] * poses[i].rotation;
        translation += weights[i] * poses[i].translation;
    }
    return {nearest_rotation(rotation), translation.normalized()};
}

}  // namespace caransac

#include "focal_pose.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

using Rows = Eigen::Matrix<double, 3, 6, Eigen::RowMajor>;

Intrinsics intrinsics(const Vector3& column) { return {column[0], column[1], column[2]}; }

}  // namespace

Matrix3 Intrinsics::inverse() const {
    const double shrink = std::exp(-log_scale);
    Matrix3 m;
    m << shrink, 0, -shrink * x, 0, shrink, -shrink * y, 0, 0, 1;
    return m;
}

FocalPose read_focal_pose(const double* from) {
    const Eigen::Map<const Rows> rows(from);
    return {{rows.leftCols<3>(), rows.col(3)}, intrinsics(rows.col(4)), intrinsics(rows.col(5))};
}

void write_focal_pose(const FocalPose& model, double* to) {
    Eigen::Map<Rows> rows(to);
    rows.leftCols<3>() = model.pose.rotation;
    rows.col(3) = model.pose.translation;
    rows.col(4) << model.camera1.log_scale, model.camera1.x, model.camera1.y;
    rows.col(5) << model.camera2.log_scale, model.camera2.x, model.camera2.y;
}

Matrix3 matrix_of(const FocalPose& model) {
    return model.camera2.inverse().transpose() * essential_from_pose(model.pose) * model.camera1.inverse();
}

Rays rays_of(const FocalPose& model) {
    Rays rays = rays_of(model.pose);
    const Matrix3 first = model.pose.rotation * model.camera1.inverse();
    std::copy_n(first.data(), 9, rays.first);
    rays.scale = std::exp(-model.camera2.log_scale);
    rays.offset[0] = -rays.scale * model.camera2.x;
    rays.offset[1] = -rays.scale * model.camera2.y;
    return rays;
}

}  // namespace caransac

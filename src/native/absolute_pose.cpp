#include "absolute_pose.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

using RowMatrix = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

Projection AbsolutePose::projection() const {
    Projection projection;
    std::copy_n(pose.rotation.data(), 9, projection.rotation);
    std::copy_n(pose.translation.data(), 3, projection.translation);
    projection.scale = std::exp(camera.log_scale);
    projection.centre[0] = camera.x;
    projection.centre[1] = camera.y;
    projection.k1 = k1;
    return projection;
}

AbsolutePose read_absolute_pose(const double* from, int columns) {
    const Eigen::Map<const RowMatrix> rows(from, 3, columns);
    AbsolutePose model{{rows.leftCols<3>(), rows.col(3)}, {}, 0};
    if (columns == 6) {
        model.camera = {rows(0, 4), rows(1, 4), rows(2, 4)};
        model.k1 = rows(0, 5);
    }
    return model;
}

void write_absolute_pose(const AbsolutePose& model, int columns, double* to) {
    Eigen::Map<RowMatrix> rows(to, 3, columns);
    rows.leftCols<3>() = model.pose.rotation;
    rows.col(3) = model.pose.translation;
    if (columns == 6) {
        rows.col(4) << model.camera.log_scale, model.camera.x, model.camera.y;
        rows.col(5) << model.k1, 0, 0;
    }
}

}  // namespace caransac

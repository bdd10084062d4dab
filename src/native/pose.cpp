#include "pose.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Geometry>

#include "hot/epipolar.h"

namespace caransac {
namespace {

bool in_front(const Pose& pose, const double* x1, const double* x2) {
    return baseline::nearer_depth<double>(pose.rotation.data(), pose.translation.data(), x1[0], x1[1], x2[0], x2[1]) >
           0;
}

}  // namespace

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

// B. K. P. Horn, "Recovering baseline and orientation from essential matrix", 1990: the columns of E span the plane
// orthogonal to t, and |t|^2 R = cofactor(E) - [t]x E. No singular value decomposition.
bool pose_from_essential(const Matrix3& essential, const double* x1, const double* x2, int num_points, Pose& pose) {
    const Matrix3 e = essential * (std::sqrt(2.0) / essential.norm());
    const Vector3 crosses[3] = {e.col(1).cross(e.col(2)), e.col(2).cross(e.col(0)), e.col(0).cross(e.col(1))};
    int largest = 0;
    for (int i = 1; i < 3; ++i)
        if (crosses[i].squaredNorm() > crosses[largest].squaredNorm()) largest = i;
    const double norm = crosses[largest].norm();
    if (!(norm > 1e-12)) return false;
    const Vector3 t = crosses[largest] / norm;
    Matrix3 cofactor;
    for (int i = 0; i < 3; ++i) cofactor.col(i) = crosses[i];
    // cofactor(E) = t t^T R whatever the sign of E; that sign selects between the two rotations. The first point is in
    // front of both cameras for one candidate only, which the other points then confirm or refuse.
    const Matrix3 twist = cross_matrix(t) * e;
    for (const double sign : {1.0, -1.0}) {
        pose.rotation = cofactor - sign * twist;
        for (const double direction : {1.0, -1.0}) {
            pose.translation = direction * t;
            if (!in_front(pose, x1, x2)) continue;
            for (int i = 1; i < num_points; ++i)
                if (!in_front(pose, x1 + 2 * i, x2 + 2 * i)) return false;
            // Only an essential matrix (two equal singular values, one zero) gives a rotation here.
            constexpr double kTolerance = 1e-3;
            if (!((pose.rotation.transpose() * pose.rotation - Matrix3::Identity()).norm() < kTolerance)) return false;
            pose.rotation = Eigen::Quaterniond(Eigen::Matrix3d(pose.rotation)).normalized().toRotationMatrix();
            return true;
        }
    }
    return false;
}

}  // namespace caransac

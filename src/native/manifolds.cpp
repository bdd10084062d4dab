#include "manifolds.h"

#include <cmath>

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <Eigen/SVD>

namespace caransac {
namespace {

Matrix3 rotation_exp(const Vector3& w) {
    const double angle = w.norm();
    if (angle < 1e-14) return Matrix3::Identity() + cross_matrix(w);
    return Eigen::AngleAxisd(angle, w / angle).toRotationMatrix();
}

template <class Derived>
void set_column(Eigen::MatrixBase<Derived>& jacobian, int column, const Matrix3& derivative) {
    jacobian.col(column) = Eigen::Map<const Eigen::Matrix<double, 9, 1>>(derivative.data());
}

// Fixes one degree of freedom.
template <class Delta, class Square>
void hold(int at, Delta& gradient, Square& hessian) {
    hessian.row(at).setZero();
    hessian.col(at).setZero();
    hessian(at, at) = 1;
    gradient[at] = 0;
}

}  // namespace

PoseManifold::PoseManifold(const Pose& pose) : pose_(pose) {
    int smallest;
    pose_.translation.normalize();
    pose_.translation.cwiseAbs().minCoeff(&smallest);
    tangent_.col(0) = pose_.translation.cross(Vector3::Unit(smallest)).normalized();
    tangent_.col(1) = pose_.translation.cross(Vector3(tangent_.col(0)));
}

PoseManifold::Jacobian PoseManifold::jacobian() const {
    Jacobian jacobian;
    const Matrix3 across = cross_matrix(pose_.translation);
    for (int k = 0; k < 3; ++k) {  // [e_k]x mixes the rows of R other than k
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        set_column(jacobian, k, across.col(j) * pose_.rotation.row(i) - across.col(i) * pose_.rotation.row(j));
    }
    for (int k = 0; k < 2; ++k) set_column(jacobian, 3 + k, cross_matrix(tangent_.col(k)) * pose_.rotation);
    return jacobian;
}

PoseManifold PoseManifold::retract(const Delta& delta) const {
    return PoseManifold(
        {rotation_exp(delta.head<3>()) * pose_.rotation, pose_.translation + tangent_ * delta.tail<2>()});
}

FundamentalManifold::FundamentalManifold(const Matrix3& fundamental) {
    const Eigen::JacobiSVD<Eigen::Matrix3d> svd(fundamental, Eigen::ComputeFullU | Eigen::ComputeFullV);
    u_ = svd.matrixU();
    v_ = svd.matrixV();
    // The third singular vectors correspond to the zero of the diagonal, so their signs can be chosen to make proper
    // rotations.
    if (u_.determinant() < 0) u_.col(2) = -u_.col(2);
    if (v_.determinant() < 0) v_.col(2) = -v_.col(2);
    s_ = svd.singularValues()[1] / svd.singularValues()[0];
}

Matrix3 FundamentalManifold::matrix() const {
    return u_.col(0) * v_.col(0).transpose() + s_ * u_.col(1) * v_.col(1).transpose();
}

FundamentalManifold::Jacobian FundamentalManifold::jacobian() const {
    // The derivatives of U diag(1, s, 0) V^T are products of columns of U and V: a rotation about one axis mixes the
    // other two.
    const auto product = [&](int i, int j) -> Matrix3 { return u_.col(i) * v_.col(j).transpose(); };
    Jacobian jacobian;
    set_column(jacobian, 0, s_ * product(2, 1));
    set_column(jacobian, 1, -product(2, 0));
    set_column(jacobian, 2, product(1, 0) - s_ * product(0, 1));
    set_column(jacobian, 3, s_ * product(1, 2));
    set_column(jacobian, 4, -product(0, 2));
    set_column(jacobian, 5, product(0, 1) - s_ * product(1, 0));
    set_column(jacobian, 6, product(1, 1));
    return jacobian;
}

FundamentalManifold FundamentalManifold::retract(const Delta& delta) const {
    return FundamentalManifold(u_ * rotation_exp(delta.head<3>()), v_ * rotation_exp(delta.segment<3>(3)),
                               s_ + delta[6]);
}

FocalManifold::Jacobian FocalManifold::jacobian() const {
    const Matrix3 inverse1 = camera1_.inverse(), inverse2 = camera2_.inverse(), matrix = this->matrix();
    Jacobian jacobian;
    const PoseManifold::Jacobian by_pose = pose_.jacobian();
    for (int k = 0; k < PoseManifold::kDof; ++k)
        set_column(jacobian, k, inverse2.transpose() * Eigen::Map<const Matrix3>(by_pose.col(k).data()) * inverse1);
    // d A^-1 = -A^-1 dA A^-1. dA is scale diag(1, 1, 0) for log_scale, and a unit in the last column for x and y.
    const auto change = [](const Intrinsics& camera, int k) {
        Matrix3 change = Matrix3::Zero();
        if (k == 0)
            change(0, 0) = change(1, 1) = std::exp(camera.log_scale);
        else
            change(k - 1, 2) = 1;
        return change;
    };
    for (int k = 0; k < kCameraDof; ++k) {
        set_column(jacobian, kFirstOfCamera[0] + k, -matrix * change(camera1_, k) * inverse1);
        set_column(jacobian, kFirstOfCamera[1] + k, -(change(camera2_, k) * inverse2).transpose() * matrix);
    }
    return jacobian;
}

FocalManifold FocalManifold::retract(const Delta& delta) const {
    const auto moved = [&](const Intrinsics& camera, int first) -> Intrinsics {
        return {camera.log_scale + delta[first], camera.x + delta[first + 1], camera.y + delta[first + 2]};
    };
    const PoseManifold pose = pose_.retract(delta.head<PoseManifold::kDof>());
    return FocalManifold({pose.pose(), moved(camera1_, kFirstOfCamera[0]), moved(camera2_, kFirstOfCamera[1])});
}

void FocalManifold::add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                              Eigen::Matrix<double, kDof, kDof>& hessian) const {
    const double values[2][kCameraDof] = {{camera1_.log_scale, camera1_.x, camera1_.y},
                                          {camera2_.log_scale, camera2_.x, camera2_.y}};
    const IntrinsicsPrior& prior = options.intrinsics;
    for (int k = 0; k < kCameraDof; ++k) {
        const double difference = values[0][k] - values[1][k];
        const double coupling = k == 0 ? prior.log_scale_difference : prior.centre_difference;
        cost += coupling * difference * difference;
        for (int i = 0; i < 2; ++i) {
            const int at = kFirstOfCamera[i] + k, other = kFirstOfCamera[1 - i] + k;
            const double precision = k == 0 ? prior.log_scale[i] : prior.centre[i];
            gradient[at] += coupling * (values[i][k] - values[1 - i][k]);
            hessian(at, at) += coupling;
            hessian(at, other) -= coupling;
            if (std::isinf(precision)) continue;
            cost += precision * values[i][k] * values[i][k];
            gradient[at] += precision * values[i][k];
            hessian(at, at) += precision;
        }
    }
    for (int k = 0; k < kCameraDof; ++k)
        for (int i = 0; i < 2; ++i) {
            if (!std::isinf(k == 0 ? prior.log_scale[i] : prior.centre[i])) continue;
            hold(kFirstOfCamera[i] + k, gradient, hessian);
        }
}

template <int kDof>
AbsoluteManifold<kDof> AbsoluteManifold<kDof>::retract(const Delta& delta) const {
    AbsolutePose moved = model_;
    moved.pose.rotation = rotation_exp(delta.template head<3>()) * model_.pose.rotation;
    moved.pose.translation += delta.template segment<3>(3);
    if constexpr (kDof == kAbsoluteFocalDof) {
        moved.camera.log_scale += delta[kAbsoluteDof];
        moved.camera.x += delta[kAbsoluteDof + 1];
        moved.camera.y += delta[kAbsoluteDof + 2];
        moved.k1 += delta[kAbsoluteDof + kCameraDof];
    }
    return AbsoluteManifold(moved);
}

template <int kDof>
void AbsoluteManifold<kDof>::add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                                       Eigen::Matrix<double, kDof, kDof>& hessian) const {
    if constexpr (kDof == kAbsoluteFocalDof) {
        const IntrinsicsPrior& prior = options.intrinsics;
        const double values[4] = {model_.camera.log_scale, model_.camera.x, model_.camera.y,
                                  model_.k1 - prior.k1_given};
        const double precisions[4] = {prior.log_scale[0], prior.centre[0], prior.centre[0], prior.k1[0]};
        for (int k = 0; k < 4; ++k) {
            const int at = kAbsoluteDof + k;
            if (std::isinf(precisions[k])) {
                hold(at, gradient, hessian);
                continue;
            }
            cost += precisions[k] * values[k] * values[k];
            gradient[at] += precisions[k] * values[k];
            hessian(at, at) += precisions[k];
        }
    }
}

template class AbsoluteManifold<kAbsoluteDof>;
template class AbsoluteManifold<kAbsoluteFocalDof>;

HomographyManifold::HomographyManifold(const Matrix3& homography) : matrix_(homography / homography.norm()) {
    inverse_ = matrix_.inverse();
}

TwoWayHomography HomographyManifold::both_ways() const {
    TwoWayHomography model;
    std::copy_n(matrix_.data(), 9, model.forth);
    std::copy_n(inverse_.data(), 9, model.back);
    return model;
}

// An orthonormal basis perpendicular to the matrix: the reflection that maps the first axis to it, without its first
// column.
HomographyManifold::Basis HomographyManifold::forth() const {
    const Eigen::Map<const Eigen::Matrix<double, 9, 1>> h(matrix_.data());
    Eigen::Matrix<double, 9, 1> v = h;
    v[0] += h[0] > 0 ? 1 : -1;
    const Eigen::Matrix<double, 9, 9> reflection =
        Eigen::Matrix<double, 9, 9>::Identity() - (2 / v.squaredNorm()) * v * v.transpose();
    return reflection.rightCols<8>();
}

// d H^-1 = -H^-1 dH H^-1
HomographyManifold::Basis HomographyManifold::back(const Basis& forth) const {
    Basis basis;
    for (int k = 0; k < kDof; ++k)
        set_column(basis, k, -inverse_ * Eigen::Map<const Matrix3>(forth.col(k).data()) * inverse_);
    return basis;
}

HomographyManifold HomographyManifold::retract(const Delta& delta) const {
    const Eigen::Matrix<double, 9, 1> step = forth() * delta;
    return HomographyManifold(matrix_ + Eigen::Map<const Matrix3>(step.data()));
}

}  // namespace caransac

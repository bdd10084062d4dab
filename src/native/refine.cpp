#include "refine.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/SVD>

#include "kernels.h"

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

// The points that take part in one refinement, packed together.
class Selection {
  public:
    Selection(const Columns<double>& points, const double* weights, const std::vector<double>& keep, int max_points) {
        const auto qualifies = [&](int i) {
            return (weights == nullptr || weights[i] > 0) && usable(points, i) && (keep.empty() || keep[i] != 0);
        };
        std::vector<int> chosen;
        chosen.reserve(points.n);
        for (int i = 0; i < points.n; ++i)
            if (qualifies(i)) chosen.push_back(i);
        count_ = static_cast<int>(chosen.size());
        if (max_points > 0 && count_ > max_points) {
            const double stride = static_cast<double>(count_) / max_points;
            for (int i = 0; i < max_points; ++i) chosen[i] = chosen[static_cast<int>(i * stride)];
            count_ = max_points;
        }
        for (auto& column : columns_) column.reserve(padded(count_));
        for (int i = 0; i < count_; ++i) push(points, chosen[i], weights == nullptr ? 1 : weights[chosen[i]]);
        while (count_ > 0 && static_cast<int>(columns_[0].size()) < padded(count_))
            for (int c = 0; c < 5; ++c) columns_[c].push_back(c == 4 ? 0 : columns_[c].back());
    }
    int count() const { return count_; }
    Columns<double> points() const {
        return {columns_[0].data(), columns_[1].data(), columns_[2].data(), columns_[3].data(), count_};
    }
    const double* weights() const { return columns_[4].data(); }

  private:
    // One infinite coordinate would make every cost infinite. Meaningful ones are of the order of one.
    static bool usable(const Columns<double>& points, int i) {
        constexpr double kFarthest = 1e6;
        return std::abs(points.u1[i]) < kFarthest && std::abs(points.v1[i]) < kFarthest &&
               std::abs(points.u2[i]) < kFarthest && std::abs(points.v2[i]) < kFarthest;
    }
    void push(const Columns<double>& points, int i, double weight) {
        const double values[5] = {points.u1[i], points.v1[i], points.u2[i], points.v2[i], weight};
        for (int c = 0; c < 5; ++c) columns_[c].push_back(values[c]);
    }
    std::vector<double> columns_[5];
    int count_ = 0;
};

// Normal equations in the manifold's own parameters.
template <class Manifold>
struct LinearSystem {
    double cost;
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> hessian;
    typename Manifold::Delta gradient;

    LinearSystem(const Manifold& at, const Selection& selection, const RefineOptions& options) {
        NormalEquations raw;
        kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, selection.points(),
                                   selection.weights(), options.loss, options.loss_scale, raw);
        cost = raw.cost;
        gradient = Eigen::Map<const typename Manifold::Delta>(raw.gradient);
        int next = 0;
        for (int i = 0; i < Manifold::kDof; ++i)
            for (int j = i; j < Manifold::kDof; ++j) hessian(i, j) = hessian(j, i) = raw.hessian[next++];
    }
};

template <class Manifold>
RefineReport levenberg_marquardt(Manifold& model, const Selection& selection, const RefineOptions& options) {
    constexpr double kMinStep = 1e-12, kMaxDamping = 1e8;
    RefineReport report{0, 0, 0};
    if (selection.count() < Manifold::kDof) return report;
    LinearSystem<Manifold> system(model, selection, options);
    report.initial_cost = report.cost = system.cost;
    double damping = 1e-4;
    while (report.steps < options.max_steps && damping < kMaxDamping) {
        ++report.steps;
        auto damped = system.hessian;
        const double floor = 1e-12 * damped.trace();
        damped.diagonal() += damping * damped.diagonal() + Manifold::Delta::Constant(floor);
        const typename Manifold::Delta delta = -damped.ldlt().solve(system.gradient);
        const double length = delta.norm();
        if (!(length > kMinStep)) break;  // converged, or not a number
        const Manifold candidate = model.retract(delta);
        const LinearSystem<Manifold> next(candidate, selection, options);
        if (!(next.cost < system.cost)) {
            damping *= 10;
            continue;
        }
        const bool converged = system.cost - next.cost < options.min_decrease * system.cost;
        model = candidate;
        system = next;
        report.cost = next.cost;
        damping = std::max(damping * 0.1, 1e-10);
        if (converged) break;
    }
    return report;
}

std::vector<double> below(const Matrix3& matrix, const Columns<double>& points, double max_residual_sq) {
    std::vector<double> keep;
    if (!(max_residual_sq > 0)) return keep;
    keep.resize(padded(points.n));
    kernels().residuals_sq(matrix.data(), points, keep.data());
    for (double& value : keep) value = value < max_residual_sq ? 1 : 0;
    return keep;
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
    for (int k = 0; k < 3; ++k)
        set_column(jacobian, k, cross_matrix(pose_.translation) * cross_matrix(Vector3::Unit(k)) * pose_.rotation);
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
    // The third singular vectors meet the zero of the diagonal, so their signs are free to make proper rotations.
    if (u_.determinant() < 0) u_.col(2) = -u_.col(2);
    if (v_.determinant() < 0) v_.col(2) = -v_.col(2);
    s_ = svd.singularValues()[1] / svd.singularValues()[0];
}

Matrix3 FundamentalManifold::matrix() const {
    return u_.col(0) * v_.col(0).transpose() + s_ * u_.col(1) * v_.col(1).transpose();
}

FundamentalManifold::Jacobian FundamentalManifold::jacobian() const {
    const Matrix3 diagonal = Vector3(1, s_, 0).asDiagonal();
    Jacobian jacobian;
    for (int k = 0; k < 3; ++k) {
        const Matrix3 generator = cross_matrix(Vector3::Unit(k));
        set_column(jacobian, k, u_ * generator * diagonal * v_.transpose());
        set_column(jacobian, 3 + k, -u_ * diagonal * generator * v_.transpose());
    }
    set_column(jacobian, 6, u_.col(1) * v_.col(1).transpose());
    return jacobian;
}

FundamentalManifold FundamentalManifold::retract(const Delta& delta) const {
    return FundamentalManifold(u_ * rotation_exp(delta.head<3>()), v_ * rotation_exp(delta.segment<3>(3)),
                               s_ + delta[6]);
}

RefineReport refine_pose(Pose& pose, const Columns<double>& points, const double* weights,
                         const RefineOptions& options) {
    PoseManifold model(pose);
    std::vector<double> keep = below(model.matrix(), points, options.max_residual_sq);
    if (!keep.empty()) {
        std::vector<double> front(padded(points.n));
        kernels().positive_depths(pose.rotation.data(), pose.translation.data(), points, front.data());
        for (int i = 0; i < points.n; ++i) keep[i] *= front[i];
    }
    const RefineReport report =
        levenberg_marquardt(model, Selection(points, weights, keep, options.max_points), options);
    pose.rotation = Eigen::Quaterniond(Eigen::Matrix3d(model.pose().rotation)).normalized().toRotationMatrix();
    pose.translation = model.pose().translation;
    return report;
}

RefineReport refine_fundamental(Matrix3& fundamental, const Columns<double>& points, const double* weights,
                                const RefineOptions& options) {
    FundamentalManifold model(fundamental);
    const std::vector<double> keep = below(model.matrix(), points, options.max_residual_sq);
    const RefineReport report =
        levenberg_marquardt(model, Selection(points, weights, keep, options.max_points), options);
    fundamental = model.matrix() / model.matrix().norm();
    return report;
}

}  // namespace caransac

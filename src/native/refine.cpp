#include "refine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Cholesky>
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

// One infinite coordinate would make every cost infinite. Meaningful ones are of the order of one.
bool usable(const Columns<double>& points, int i) {
    constexpr double kFarthest = 1e6;
    return std::abs(points.u1[i]) < kFarthest && std::abs(points.v1[i]) < kFarthest &&
           std::abs(points.u2[i]) < kFarthest && std::abs(points.v2[i]) < kFarthest;
}

// Normal equations in the manifold's own parameters.
template <class Manifold>
struct LinearSystem {
    double cost;
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> hessian;
    typename Manifold::Delta gradient;

    LinearSystem(const Manifold& at, const WeightedPoints& points, const RefineOptions& options) {
        NormalEquations raw;
        kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, points.columns(),
                                   points.weights(), options.loss, options.loss_scale, options.precision, raw);
        cost = raw.cost;
        gradient = Eigen::Map<const typename Manifold::Delta>(raw.gradient);
        hessian = symmetric<Manifold::kDof>(raw.hessian);
        at.add_prior(options, cost, gradient, hessian);
    }
};

// One way's normal equations in the nine entries of its matrix, and in the manifold's parameters by the chain rule.
void add_way(const TransferSums& sums, const HomographyManifold::Basis& basis, HomographyManifold::Delta& gradient,
             Eigen::Matrix<double, 8, 8>& hessian) {
    Eigen::Matrix<double, 9, 9> by_entries = Eigen::Matrix<double, 9, 9>::Zero();
    const Eigen::Matrix3d ones = symmetric<3>(sums.moments[0]), p = symmetric<3>(sums.moments[1]),
                          q = symmetric<3>(sums.moments[2]), both = symmetric<3>(sums.moments[3]);
    by_entries.block<3, 3>(0, 0) = by_entries.block<3, 3>(3, 3) = ones;
    by_entries.block<3, 3>(0, 6) = by_entries.block<3, 3>(6, 0) = -p;
    by_entries.block<3, 3>(3, 6) = by_entries.block<3, 3>(6, 3) = -q;
    by_entries.block<3, 3>(6, 6) = both;
    gradient += basis.transpose() * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(sums.gradient);
    hessian += basis.transpose() * by_entries * basis;
}

template <>
struct LinearSystem<HomographyManifold> {
    double cost;
    Eigen::Matrix<double, 8, 8> hessian = Eigen::Matrix<double, 8, 8>::Zero();
    HomographyManifold::Delta gradient = HomographyManifold::Delta::Zero();

    LinearSystem(const HomographyManifold& at, const WeightedPoints& points, const RefineOptions& options) {
        TransferSums sums[2];
        kernels().transfer_equations(at.both_ways(), points.columns(), points.weights(), options.loss,
                                     options.loss_scale, cost, sums);
        const HomographyManifold::Basis forth = at.forth();
        add_way(sums[0], forth, gradient, hessian);
        add_way(sums[1], at.back(forth), gradient, hessian);
    }
};

template <class Manifold>
RefineReport levenberg_marquardt(Manifold& model, const WeightedPoints& points, const RefineOptions& options) {
    constexpr double kMinStep = 1e-12, kMaxDamping = 1e8;
    RefineReport report{0, 0, 0};
    if (points.columns().n < Manifold::kDof) return report;
    LinearSystem<Manifold> system(model, points, options);
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
        const LinearSystem<Manifold> next(candidate, points, options);
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

FocalManifold::Jacobian FocalManifold::jacobian() const {
    const Matrix3 inverse1 = camera1_.inverse(), inverse2 = camera2_.inverse(), matrix = this->matrix();
    Jacobian jacobian;
    const PoseManifold::Jacobian by_pose = pose_.jacobian();
    for (int k = 0; k < PoseManifold::kDof; ++k)
        set_column(jacobian, k, inverse2.transpose() * Eigen::Map<const Matrix3>(by_pose.col(k).data()) * inverse1);
    // d A^-1 = -A^-1 dA A^-1, and dA is scale diag(1, 1, 0) for log_scale, a unit in the last column for x and y.
    const auto change = [](const Intrinsics& camera, int k) {
        Matrix3 change = Matrix3::Zero();
        if (k == 0)
            change(0, 0) = change(1, 1) = std::exp(camera.log_scale);
        else
            change(k - 1, 2) = 1;
        return change;
    };
    for (int k = 0; k < 3; ++k) {
        set_column(jacobian, 5 + k, -matrix * change(camera1_, k) * inverse1);
        set_column(jacobian, 8 + k, -(change(camera2_, k) * inverse2).transpose() * matrix);
    }
    return jacobian;
}

FocalManifold FocalManifold::retract(const Delta& delta) const {
    const auto moved = [&](const Intrinsics& camera, int first) -> Intrinsics {
        return {camera.log_scale + delta[first], camera.x + delta[first + 1], camera.y + delta[first + 2]};
    };
    const PoseManifold pose = pose_.retract(delta.head<PoseManifold::kDof>());
    return FocalManifold({pose.pose(), moved(camera1_, 5), moved(camera2_, 8)});
}

void FocalManifold::add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                              Eigen::Matrix<double, kDof, kDof>& hessian) const {
    const double values[2][3] = {{camera1_.log_scale, camera1_.x, camera1_.y},
                                 {camera2_.log_scale, camera2_.x, camera2_.y}};
    const IntrinsicsPrior& prior = options.intrinsics;
    for (int k = 0; k < 3; ++k) {
        const double difference = values[0][k] - values[1][k];
        const double coupling = k == 0 ? prior.log_scale_difference : prior.centre_difference;
        cost += coupling * difference * difference;
        for (int i = 0; i < 2; ++i) {
            const int at = 5 + 3 * i + k, other = 8 - 3 * i + k;
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
    for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 2; ++i) {
            if (!std::isinf(k == 0 ? prior.log_scale[i] : prior.centre[i])) continue;
            const int at = 5 + 3 * i + k;  // held fixed
            hessian.row(at).setZero();
            hessian.col(at).setZero();
            hessian(at, at) = 1;
            gradient[at] = 0;
        }
}

HomographyManifold::HomographyManifold(const Matrix3& homography) : matrix_(homography / homography.norm()) {
    inverse_ = matrix_.inverse();
}

TwoWayHomography HomographyManifold::both_ways() const {
    TwoWayHomography model;
    std::copy_n(matrix_.data(), 9, model.forth);
    std::copy_n(inverse_.data(), 9, model.back);
    return model;
}

// The columns but the first of the reflection that maps the first axis to the matrix: an orthonormal basis across it.
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

void WeightedPoints::gather(const Columns<double>& points, const double* weights, const std::vector<int>& index) {
    count_ = static_cast<int>(index.size());
    data_.resize(5 * static_cast<size_t>(padded(count_)));
    const double* from[5] = {points.u1, points.v1, points.u2, points.v2, weights};
    double* to = data_.data();
    for (const double* column : from) {
        for (const int i : index) *to++ = column == nullptr ? 1 : column[i];
        to = std::fill_n(to, padded(count_) - count_, 0.0);
    }
}

Refiner::Refiner(const Columns<double>& points, const double* weights, const RefineOptions& options)
    : options_(options) {
    index_.reserve(points.n);
    for (int i = 0; i < points.n; ++i)
        if ((weights == nullptr || weights[i] > 0) && usable(points, i)) index_.push_back(i);
    usable_.gather(points, weights, index_);
    std::iota(index_.begin(), index_.end(), 0);
}

void Refiner::select_close(const Matrix3& matrix) {
    index_.resize(padded(usable_.columns().n));
    index_.resize(kernels().close_points(matrix.data(), usable_.columns(), options_.max_residual_sq, index_.data()));
}

void Refiner::select_in_front(const Rays& rays) {
    in_front_.resize(padded(usable_.columns().n));
    kernels().positive_depths(rays, usable_.columns(), in_front_.data());
    size_t count = 0;
    for (const int i : index_) {
        index_[count] = i;
        count += in_front_[i] > 0;  // no branch: nobody could predict it
    }
    index_.resize(count);
}

// The selected points, or evenly spread ones among them when there are too many.
const WeightedPoints& Refiner::thinned() {
    const int count = static_cast<int>(index_.size()), most = options_.max_points;
    if (most > 0 && count > most) {
        const double stride = static_cast<double>(count) / most;
        for (int i = 0; i < most; ++i) index_[i] = index_[static_cast<int>(i * stride)];
        index_.resize(most);
    }
    if (index_.size() == static_cast<size_t>(usable_.columns().n)) return usable_;
    selected_.gather(usable_.columns(), usable_.weights(), index_);
    return selected_;
}

RefineReport Refiner::refine(Pose& pose) {
    PoseManifold model(pose);
    if (options_.max_residual_sq > 0) {
        select_close(model.matrix());
        select_in_front(rays_of(pose));
    }
    const RefineReport report = levenberg_marquardt(model, thinned(), options_);
    pose.rotation = Eigen::Quaterniond(Eigen::Matrix3d(model.pose().rotation)).normalized().toRotationMatrix();
    pose.translation = model.pose().translation;
    return report;
}

RefineReport Refiner::refine(Matrix3& fundamental) {
    FundamentalManifold model(fundamental);
    if (options_.max_residual_sq > 0) select_close(model.matrix());
    const RefineReport report = levenberg_marquardt(model, thinned(), options_);
    fundamental = model.matrix() / model.matrix().norm();
    return report;
}

RefineReport Refiner::refine(FocalPose& focal_pose) {
    FocalManifold model(focal_pose);
    if (options_.max_residual_sq > 0) {
        select_close(model.matrix());
        select_in_front(rays_of(focal_pose));
    }
    const RefineReport report = levenberg_marquardt(model, thinned(), options_);
    focal_pose = model.model();
    Matrix3& rotation = focal_pose.pose.rotation;
    rotation = Eigen::Quaterniond(Eigen::Matrix3d(rotation)).normalized().toRotationMatrix();
    return report;
}

RefineReport Refiner::refine(HomographyManifold& homography) {
    if (options_.max_residual_sq > 0) {
        residuals_sq_.resize(padded(usable_.columns().n));
        kernels().transfer_errors_sq(homography.both_ways(), usable_.columns(), residuals_sq_.data());
        index_.clear();
        for (int i = 0; i < usable_.columns().n; ++i)
            if (residuals_sq_[i] < options_.max_residual_sq) index_.push_back(i);
    }
    return levenberg_marquardt(homography, thinned(), options_);
}

Eigen::Matrix<double, 8, 8> Refiner::information(const HomographyManifold& at) const {
    RefineOptions everything;
    everything.loss = Loss::kTruncated;
    everything.loss_scale = 1e50;
    return LinearSystem<HomographyManifold>(at, usable_, everything).hessian;
}

}  // namespace caransac

#include "linear_system.h"

#include <algorithm>
#include <limits>

namespace caransac {
namespace {

template <int kDof>
Eigen::Matrix<double, kDof, kDof> symmetric(const double* upper_triangle) {
    Eigen::Matrix<double, kDof, kDof> matrix;
    for (int i = 0; i < kDof; ++i)
        for (int j = i; j < kDof; ++j) matrix(i, j) = matrix(j, i) = *upper_triangle++;
    return matrix;
}

// The normal equations of the points plus the prior of the manifold.
template <class Manifold>
LinearSystem<Manifold::kDof> with_prior(const NormalEquations& of_points, const Manifold& at,
                                        const RefineOptions& options) {
    LinearSystem<Manifold::kDof> system{of_points.cost, symmetric<Manifold::kDof>(of_points.hessian),
                                        Eigen::Map<const typename Manifold::Delta>(of_points.gradient)};
    // The packed logarithm returns a finite number for NaN, and such a cost could be the lowest.
    if (!system.gradient.allFinite()) system.cost = std::numeric_limits<double>::quiet_NaN();
    at.add_prior(options, system.cost, system.gradient, system.hessian);
    return system;
}

template <class Manifold>
LinearSystem<Manifold::kDof> sampson(const Manifold& at, const WeightedPoints& points, const RefineOptions& options) {
    NormalEquations raw;
    kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, points.columns(),
                               points.weights(), options.loss, options.loss_scale, options.precision, raw);
    return with_prior(raw, at, options);
}

template <int kDof>
LinearSystem<kDof> reprojection(const AbsoluteManifold<kDof>& at, const WeightedPoints& points,
                                const RefineOptions& options) {
    NormalEquations raw;
    kernels().reprojection_equations(at.model().projection(), kDof, points.columns(), points.weights(), options.loss,
                                     options.loss_scale, options.precision, raw);
    return with_prior(raw, at, options);
}

// Adds the normal equations of one direction in the nine entries of its matrix, by the chain rule.
void add_way(const TransferSums& sums, const HomographyManifold::Basis& basis, LinearSystem<kHomographyDof>& system) {
    Eigen::Matrix<double, 9, 9> by_entries = Eigen::Matrix<double, 9, 9>::Zero();
    const Eigen::Matrix3d ones = symmetric<3>(sums.moments[0]), p = symmetric<3>(sums.moments[1]),
                          q = symmetric<3>(sums.moments[2]), both = symmetric<3>(sums.moments[3]);
    by_entries.block<3, 3>(0, 0) = by_entries.block<3, 3>(3, 3) = ones;
    by_entries.block<3, 3>(0, 6) = by_entries.block<3, 3>(6, 0) = -p;
    by_entries.block<3, 3>(3, 6) = by_entries.block<3, 3>(6, 3) = -q;
    by_entries.block<3, 3>(6, 6) = both;
    system.gradient += basis.transpose() * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(sums.gradient);
    system.hessian += basis.transpose() * by_entries * basis;
}

}  // namespace

void WeightedPoints::gather(const Columns<double>& points, const double* weights, const int* index, int count) {
    count_ = count;
    in_space_ = points.w2 != nullptr;
    const int columns = in_space_ ? 6 : 5;
    data_.resize(columns * static_cast<size_t>(padded(count)));
    const double* from[6] = {weights, points.u1, points.v1, points.u2, points.v2, points.w2};
    double* to = data_.data();
    for (int c = 0; c < columns; ++c) {
        const double* column = from[c];
        for (int i = 0; i < count; ++i) to[i] = column == nullptr ? 1 : column[index[i]];
        to = std::fill_n(to + count, padded(count) - count, 0.0);
    }
}

LinearSystem<kPoseDof> linearise(const PoseManifold& at, const WeightedPoints& points, const RefineOptions& options) {
    return sampson(at, points, options);
}

LinearSystem<kFundamentalDof> linearise(const FundamentalManifold& at, const WeightedPoints& points,
                                        const RefineOptions& options) {
    return sampson(at, points, options);
}

LinearSystem<kFocalPoseDof> linearise(const FocalManifold& at, const WeightedPoints& points,
                                      const RefineOptions& options) {
    return sampson(at, points, options);
}

LinearSystem<kHomographyDof> linearise(const HomographyManifold& at, const WeightedPoints& points,
                                       const RefineOptions& options) {
    LinearSystem<kHomographyDof> system;
    TransferSums sums[2];
    kernels().transfer_equations(at.both_ways(), points.columns(), points.weights(), options.loss, options.loss_scale,
                                 system.cost, sums);
    const HomographyManifold::Basis forth = at.forth();
    add_way(sums[0], forth, system);
    add_way(sums[1], at.back(forth), system);
    return system;
}

LinearSystem<kPoseDof> linearise(const RayManifold& at, const WeightedPoints& points, const RefineOptions& options) {
    const int n = points.columns().n;
    Eigen::VectorXd residuals = Eigen::VectorXd::Zero(padded(n)), pull(padded(n)), curvature(padded(n));
    Eigen::Matrix<double, Eigen::Dynamic, kPoseDof, Eigen::RowMajor> slopes(n, kPoseDof);
    ray_jacobian(at, points.columns(), residuals.data(), slopes.data());
    LinearSystem<kPoseDof> system;
    system.cost = kernels().loss_terms(residuals.data(), points.weights(), n, options.loss, options.loss_scale,
                                       pull.data(), curvature.data());
    system.gradient = slopes.transpose() * pull.head(n);
    system.hessian = slopes.transpose() * curvature.head(n).asDiagonal() * slopes;
    return system;
}

LinearSystem<kAbsoluteDof> linearise(const AbsoluteManifold<kAbsoluteDof>& at, const WeightedPoints& points,
                                     const RefineOptions& options) {
    return reprojection(at, points, options);
}

LinearSystem<kAbsoluteFocalDof> linearise(const AbsoluteManifold<kAbsoluteFocalDof>& at, const WeightedPoints& points,
                                          const RefineOptions& options) {
    return reprojection(at, points, options);
}

}  // namespace caransac

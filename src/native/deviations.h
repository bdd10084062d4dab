// How far noise moves what a model says: the covariance of its degrees of freedom, carried over.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

#include "refine.h"

namespace caransac {

using Rates = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Deviations {
    double all, supported;
};

namespace internal {

// Information about a model that can be inverted.
template <class Manifold>
Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> regular_information(const Manifold& at,
                                                                          const Columns<double>& points,
                                                                          const std::vector<double>& weights,
                                                                          double variance) {
    const Refiner refiner(points, weights.data(), RefineOptions());
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> information = refiner.information(at) / variance;
    information.diagonal().array() += 1e-9 * information.trace() + 1e-12 / variance;
    return information;
}

template <class Information>
double largest_deviation(const Information& information, const Rates& rates) {
    const Eigen::MatrixXd covariance = rates.transpose() * information.ldlt().solve(rates);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance, Eigen::EigenvaluesOnly);
    return std::sqrt(std::max(solver.eigenvalues()[covariance.rows() - 1], 0.0));
}

// Sets the weights of the `count` points of the largest influence to zero; of equal ones, the first.
template <class Information, class Slopes>
void drop_influential(const Information& information, const Slopes& slopes, int count, std::vector<double>& weights) {
    const Information inverse = information.inverse();
    const int n = static_cast<int>(weights.size());
    std::vector<double> influence(n);
    for (int i = 0; i < n; ++i) {
        influence[i] = weights[i] * slopes.row(i).dot(slopes.row(i) * inverse);
        if (std::isnan(influence[i])) influence[i] = 0;  // nothing could be sorted by it
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    count = std::min(count, n);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int a, int b) { return influence[a] != influence[b] ? influence[a] > influence[b] : a < b; });
    for (int i = 0; i < count; ++i) weights[order[i]] = 0;
}

}  // namespace internal

// Largest standard deviation of what a model says, given how that moves with the model's degrees of freedom.
//   weights:  of the points that the model was fitted to
//   rates:    degrees of freedom x numbers
//   variance: of the residuals
//   dropped:  so many points of the largest influence may agree by chance: `supported` is the deviation without them.
//             Residuals of more than one number, those of homographies, have none dropped.
template <class Manifold>
Deviations deviations(const Manifold& at, const Columns<double>& points, std::vector<double> weights,
                      const Rates& rates, double variance, int dropped) {
    const auto information = internal::regular_information(at, points, weights, variance);
    const double all = internal::largest_deviation(information, rates);
    if constexpr (std::is_same_v<Manifold, HomographyManifold>) {
        return {all, all};
    } else {
        std::vector<double> residuals(padded(points.n));
        Eigen::Matrix<double, Eigen::Dynamic, 9, Eigen::RowMajor> by_entry(points.n, 9);
        kernels().residual_jacobian(at.matrix().data(), points, residuals.data(), by_entry.data());
        const Eigen::Matrix<double, Eigen::Dynamic, Manifold::kDof, Eigen::RowMajor> slopes = by_entry * at.jacobian();
        // In two parts: points hide behind each other.
        internal::drop_influential(information, slopes, dropped - dropped / 2, weights);
        internal::drop_influential(internal::regular_information(at, points, weights, variance), slopes, dropped / 2,
                                   weights);
        const auto left = internal::regular_information(at, points, weights, variance);
        return {all, internal::largest_deviation(left, rates)};
    }
}

}  // namespace caransac

// Propagates noise to the output of a model, by the covariance of its degrees of freedom.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "refine.h"

namespace caransac {

// Matrices: degrees of freedom x outputs, residuals x degrees of freedom, degrees of freedom x degrees of freedom.
using Rates = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Slopes = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Prior = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Signed residuals, padded(n) of them, and their derivatives with respect to the degrees of freedom.
template <class Manifold>
Slopes residual_slopes(const Manifold& at, const Columns<double>& points, double* residuals) {
    if constexpr (std::is_same_v<Manifold, RayManifold>) {
        Slopes slopes(points.n, Manifold::kDof);
        ray_jacobian(at, points, residuals, slopes.data());
        return slopes;
    } else {
        Eigen::Matrix<double, Eigen::Dynamic, 9, Eigen::RowMajor> by_entry(points.n, 9);
        kernels().residual_jacobian(at.matrix().data(), points, residuals, by_entry.data());
        return by_entry * at.jacobian();
    }
}

// The same for absolute poses, whose residuals have two components: 2 n residuals and 2 n rows.
template <int kDof>
Slopes residual_slopes(const AbsoluteManifold<kDof>& at, const Columns<double>& points, double* residuals) {
    Slopes slopes(2 * points.n, kDof);
    kernels().reprojection_jacobian(at.model().projection(), kDof, points, residuals, slopes.data());
    return slopes;
}

struct Deviations {
    double all, supported;
};

// The functions up to `deviations` do not depend on the kind of model, so that they are compiled once.

// Adds a prior to the unit-noise information about a model's degrees of freedom, for a given variance of the residuals.
// Infinity on the prior's diagonal fixes a degree of freedom. The result is invertible.
Eigen::MatrixXd regular_information(const Eigen::MatrixXd& at_noise_one, double variance, const Prior& prior);

// The same for information that already includes the variance of the residuals.
Eigen::MatrixXd with_prior(Eigen::MatrixXd information, const Prior& prior);

double largest_deviation(const Eigen::MatrixXd& information, const Rates& rates);

// Repeats every weight `times` times.
std::vector<double> repeated(const std::vector<double>& weights, int times);

// Removes points whose derivatives are too large or NaN from the derivatives and the weights.
void drop_absurd(Slopes& slopes, std::vector<double>& weights);

// Information, for unit noise, of points with weights and derivatives of their residuals.
Eigen::MatrixXd information_of(const Slopes& slopes, const std::vector<double>& weights);

// Change of the degrees of freedom, to first order, when the residuals change.
Eigen::VectorXd response_of(const Slopes& slopes, const std::vector<double>& weights, const Eigen::VectorXd& moved,
                            double variance, const Prior& prior);

// Removes the `count` most influential points from the weights and from the unit-noise information; among equals, the
// first ones. A point has `numbers` components in its residual, with one row of slopes each.
void drop_influential(const Eigen::MatrixXd& information, const Slopes& slopes, int count, int numbers,
                      std::vector<double>& weights, Eigen::MatrixXd& at_noise_one);

// Largest standard deviation of the output of a model, given the derivatives of the output with respect to the degrees
// of freedom.
//   weights:  weights of the points that the model was fitted to
//   rates:    degrees of freedom x outputs
//   variance: variance of the residuals
//   prior:    information about the degrees of freedom from other sources than the points
//   dropped:  number of the most influential points, which may agree by chance. `supported` is the deviation
//             without them. Homographies drop no points.
template <class Manifold>
Deviations deviations(const Manifold& at, const Columns<double>& points, std::vector<double> weights,
                      const Rates& rates, double variance, const Prior& prior, int dropped) {
    if constexpr (std::is_same_v<Manifold, HomographyManifold>) {
        const auto at_noise_one = Refiner(points, weights.data(), RefineOptions()).information(at);
        const double all = largest_deviation(regular_information(at_noise_one, variance, prior), rates);
        return {all, all};
    } else {
        std::vector<double> residuals(2 * static_cast<size_t>(padded(points.n)));  // one or two components
        Slopes slopes = residual_slopes(at, points, residuals.data());
        const int numbers = points.n > 0 ? static_cast<int>(slopes.rows() / points.n) : 1;
        weights = repeated(weights, numbers);
        drop_absurd(slopes, weights);
        Eigen::MatrixXd at_noise_one = information_of(slopes, weights);
        const auto information = [&] { return regular_information(at_noise_one, variance, prior); };
        const double all = largest_deviation(information(), rates);
        // In two steps, because influential points can mask each other.
        for (const int part : {dropped - dropped / 2, dropped / 2})
            drop_influential(information(), slopes, part, numbers, weights, at_noise_one);
        return {all, largest_deviation(information(), rates)};
    }
}

// Change of a model's degrees of freedom, to first order, when its points move. Points whose residuals are NaN after
// the move are ignored. Variance and prior as above.
template <class Manifold>
Eigen::VectorXd response(const Manifold& at, const Columns<double>& points, const Columns<double>& moved,
                         std::vector<double> weights, double variance, const Prior& prior) {
    Eigen::VectorXd before(padded(points.n)), after(padded(points.n));
    Slopes slopes = residual_slopes(at, points, before.data());
    residual_slopes(at, moved, after.data());
    Eigen::VectorXd change = after.head(points.n) - before.head(points.n);
    drop_absurd(slopes, weights);
    for (int i = 0; i < points.n; ++i) {
        if (std::isfinite(change[i])) continue;
        change[i] = weights[i] = 0;
    }
    return response_of(slopes, weights, change, variance, prior);
}

}  // namespace caransac

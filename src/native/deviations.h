// How far noise moves what a model says: the covariance of its degrees of freedom, carried over.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "refine.h"

namespace caransac {

// Degrees of freedom x numbers, residuals x degrees of freedom, and degrees of freedom x degrees of freedom.
using Rates = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Slopes = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Prior = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Signed residuals, padded(n) of them, and their derivatives by a model's degrees of freedom.
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

// The same of absolute poses, whose residuals are of two numbers: 2 n of them, and as many rows.
template <int kDof>
Slopes residual_slopes(const AbsoluteManifold<kDof>& at, const Columns<double>& points, double* residuals) {
    Slopes slopes(2 * points.n, kDof);
    kernels().reprojection_jacobian(at.model().projection(), kDof, points, residuals, slopes.data());
    return slopes;
}

struct Deviations {
    double all, supported;
};

// The functions up to `deviations` know no kind of model, so that they are compiled once.

// Information, at noise one, about a model's degrees of freedom, at a variance of the residuals, and a prior on top of
// it; infinity on the prior's diagonal holds a degree of freedom fixed. It can be inverted.
Eigen::MatrixXd regular_information(const Eigen::MatrixXd& at_noise_one, double variance, const Prior& prior);

// Information about a model's degrees of freedom, and a prior on top of it, as above.
Eigen::MatrixXd with_prior(Eigen::MatrixXd information, const Prior& prior);

double largest_deviation(const Eigen::MatrixXd& information, const Rates& rates);

// Every weight so many times in a row.
std::vector<double> repeated(const std::vector<double>& weights, int times);

// Takes points whose derivatives are too long, or no numbers, out of these and of the weights.
void drop_absurd(Slopes& slopes, std::vector<double>& weights);

// Information, at noise one, of points with weights and derivatives of their residuals.
Eigen::MatrixXd information_of(const Slopes& slopes, const std::vector<double>& weights);

// How the degrees of freedom follow residuals that have moved so far, to first order.
Eigen::VectorXd response_of(const Slopes& slopes, const std::vector<double>& weights, const Eigen::VectorXd& moved,
                            double variance, const Prior& prior);

// Takes the `count` points of the largest influence, of equal ones the first, out of the weights and of the information
// at noise one. A point has so many numbers in its residual, one row of slopes for each.
void drop_influential(const Eigen::MatrixXd& information, const Slopes& slopes, int count, int numbers,
                      std::vector<double>& weights, Eigen::MatrixXd& at_noise_one);

// Largest standard deviation of what a model says, given how that moves with the model's degrees of freedom.
//   weights:  of the points that the model was fitted to
//   rates:    degrees of freedom x numbers
//   variance: of the residuals
//   prior:    information about the degrees of freedom that does not come from the points
//   dropped:  so many points of the largest influence may agree by chance: `supported` is the deviation without them.
//             Homographies have none dropped.
template <class Manifold>
Deviations deviations(const Manifold& at, const Columns<double>& points, std::vector<double> weights,
                      const Rates& rates, double variance, const Prior& prior, int dropped) {
    if constexpr (std::is_same_v<Manifold, HomographyManifold>) {
        const auto at_noise_one = Refiner(points, weights.data(), RefineOptions()).information(at);
        const double all = largest_deviation(regular_information(at_noise_one, variance, prior), rates);
        return {all, all};
    } else {
        std::vector<double> residuals(2 * static_cast<size_t>(padded(points.n)));  // of one number or two
        Slopes slopes = residual_slopes(at, points, residuals.data());
        const int numbers = points.n > 0 ? static_cast<int>(slopes.rows() / points.n) : 1;
        weights = repeated(weights, numbers);
        drop_absurd(slopes, weights);
        Eigen::MatrixXd at_noise_one = information_of(slopes, weights);
        const auto information = [&] { return regular_information(at_noise_one, variance, prior); };
        const double all = largest_deviation(information(), rates);
        for (const int part : {dropped - dropped / 2, dropped / 2})  // points hide behind each other
            drop_influential(information(), slopes, part, numbers, weights, at_noise_one);
        return {all, largest_deviation(information(), rates)};
    }
}

// How a model's degrees of freedom follow its points, of as many weights, to where they moved: to first order. Points
// whose residuals are no numbers there take no part. Variance and prior as above.
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

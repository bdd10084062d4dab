#include "deviations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

namespace caransac {

Eigen::MatrixXd regular_information(const Eigen::MatrixXd& at_noise_one, double variance, const Prior& prior) {
    constexpr double kSure = 1e12;  // information about what is held fixed
    Eigen::MatrixXd information = at_noise_one / variance;
    const double floor = 1e-9 * information.trace() + 1e-12 / variance;
    information.diagonal().array() += floor;
    for (Eigen::Index k = 0; k < prior.rows(); ++k) {
        if (!std::isinf(prior(k, k))) continue;
        information.row(k).setZero();
        information.col(k).setZero();
    }
    return information + prior.cwiseMin(kSure);
}

double largest_deviation(const Eigen::MatrixXd& information, const Rates& rates) {
    const Eigen::MatrixXd covariance = rates.transpose() * information.ldlt().solve(rates);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance, Eigen::EigenvaluesOnly);
    return std::sqrt(std::max(solver.eigenvalues()[covariance.rows() - 1], 0.0));
}

void drop_influential(const Eigen::MatrixXd& information, const Slopes& slopes, int count,
                      std::vector<double>& weights) {
    const int n = static_cast<int>(weights.size());
    const Slopes carried = information.ldlt().solve(Eigen::MatrixXd::Identity(information.rows(), information.cols())) *
                           slopes.transpose();
    std::vector<double> influence(n);
    for (int i = 0; i < n; ++i) {
        influence[i] = weights[i] * slopes.row(i).dot(carried.col(i));
        if (std::isnan(influence[i])) influence[i] = 0;  // nothing could be sorted by it
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    count = std::min(count, n);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int a, int b) { return influence[a] != influence[b] ? influence[a] > influence[b] : a < b; });
    for (int i = 0; i < count; ++i) weights[order[i]] = 0;
}

}  // namespace caransac

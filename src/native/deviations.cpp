#include "deviations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

namespace caransac {
namespace {

Eigen::Map<const Eigen::VectorXd> as_vector(const std::vector<double>& values) {
    return {values.data(), static_cast<Eigen::Index>(values.size())};
}

}  // namespace

Eigen::MatrixXd regular_information(const Eigen::MatrixXd& at_noise_one, double variance, const Prior& prior) {
    Eigen::MatrixXd information = at_noise_one / variance;
    const double floor = 1e-9 * information.trace() + 1e-12 / variance;
    information.diagonal().array() += floor;
    return with_prior(std::move(information), prior);
}

Eigen::MatrixXd with_prior(Eigen::MatrixXd information, const Prior& prior) {
    constexpr double kSure = 1e12;  // information about a fixed degree of freedom
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

std::vector<double> repeated(const std::vector<double>& weights, int times) {
    if (times == 1) return weights;
    std::vector<double> result;
    for (const double weight : weights) result.insert(result.end(), times, weight);
    return result;
}

void drop_absurd(Slopes& slopes, std::vector<double>& weights) {
    constexpr double kLongest = 1e12;
    for (Eigen::Index i = 0; i < slopes.rows(); ++i) {
        if (slopes.row(i).squaredNorm() < kLongest) continue;
        slopes.row(i).setZero();
        weights[i] = 0;
    }
}

Eigen::MatrixXd information_of(const Slopes& slopes, const std::vector<double>& weights) {
    const Slopes weighted = as_vector(weights).asDiagonal() * slopes;
    return slopes.transpose() * weighted;
}

Eigen::VectorXd response_of(const Slopes& slopes, const std::vector<double>& weights, const Eigen::VectorXd& moved,
                            double variance, const Prior& prior) {
    Eigen::MatrixXd information = with_prior(information_of(slopes, weights) / variance, prior);
    const double floor = 1e-9 * information.trace() + 1e-12;
    information.diagonal().array() += floor;
    const Eigen::VectorXd pull = slopes.transpose() * as_vector(weights).cwiseProduct(moved) / variance;
    return -information.ldlt().solve(pull);
}

void drop_influential(const Eigen::MatrixXd& information, const Slopes& slopes, int count, int numbers,
                      std::vector<double>& weights, Eigen::MatrixXd& at_noise_one) {
    const int n = static_cast<int>(weights.size()) / numbers;
    const Eigen::MatrixXd covariance =
        information.ldlt().solve(Eigen::MatrixXd::Identity(information.rows(), information.cols()));
    const Slopes carried = slopes * covariance;
    const Eigen::VectorXd by_row = carried.cwiseProduct(slopes).rowwise().sum().cwiseProduct(as_vector(weights));
    std::vector<double> influence(n);
    for (Eigen::Index row = 0; row < by_row.size(); ++row)
        if (!std::isnan(by_row[row])) influence[row / numbers] += by_row[row];  // NaN cannot be sorted
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    count = std::min(count, n);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int a, int b) { return influence[a] != influence[b] ? influence[a] > influence[b] : a < b; });
    for (int i = 0; i < count; ++i) {
        for (int dropped = numbers * order[i]; dropped < numbers * (order[i] + 1); ++dropped) {
            at_noise_one -= weights[dropped] * slopes.row(dropped).transpose() * slopes.row(dropped);
            weights[dropped] = 0;
        }
    }
}

}  // namespace caransac

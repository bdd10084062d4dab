#include "fit_evidence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/LU>

namespace caransac {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// Matches that the noise explains and whose derivatives are not too steep.
std::vector<int> choose(const std::vector<double>& squares, const Eigen::Map<const Slopes>& slopes, int dimensions,
                        const FitLimits& limits) {
    std::vector<int> kept;
    for (int i = 0; i < static_cast<int>(squares.size()); ++i)
        if (squares[i] < limits.last * limits.last &&
            slopes.middleRows(dimensions * i, dimensions).squaredNorm() < limits.steepest * limits.steepest)
            kept.push_back(i);
    return kept;
}

// `enough` of the matches or all, evenly spread.
std::vector<int> thin(const std::vector<int>& kept, int enough) {
    const int count = static_cast<int>(kept.size());
    if (count <= enough) return kept;
    std::vector<int> thinned(enough);
    const double step = (count - 1.0) / (enough - 1);
    for (int i = 0; i + 1 < enough; ++i) thinned[i] = kept[static_cast<int>(i * step)];
    thinned.back() = kept.back();
    return thinned;
}

// Sum of the outer products of the rows of slopes, with a weight for each match.
template <class Rows>
Matrix information(const Rows& slopes, const Vector& weights) {
    const auto times = weights.size() > 0 ? slopes.rows() / weights.size() : 1;
    const Slopes weighted = weights.replicate(1, times).transpose().reshaped().asDiagonal() * slopes;
    return slopes.transpose() * weighted;
}

// Share of right matches among all matches with at least as much influence on the model (false discovery rate).
template <class Rows>
Vector right_shares(const Vector& squares, const Vector& weights, const Rows& slopes, int dimensions,
                    const FitLimits& limits) {
    Matrix own = information(slopes, weights);
    own.diagonal().array() += 1e-9 * own.trace() + 1e-300;
    const Slopes carried = slopes * own.inverse();
    const Vector by_row = carried.cwiseProduct(slopes).rowwise().sum();
    const int n = static_cast<int>(squares.size());
    std::vector<std::pair<double, int>> order(n);  // the most influential first, and among equals the first one
    for (int k = 0; k < n; ++k) {
        const double influence = by_row.segment(static_cast<Eigen::Index>(k) * dimensions, dimensions).sum();
        order[k] = {std::isnan(influence) ? 0.0 : -influence, k};  // NaN cannot be sorted
    }
    std::sort(order.begin(), order.end());
    const auto volume = [&](double radius) { return std::pow(radius, dimensions); };
    const double ratio = volume(limits.reach) / (volume(limits.last) - volume(limits.first));
    const auto square = [](double value) { return value * value; };
    Vector shares(n);
    int near = 0, far = 0;
    for (const auto& [_, k] : order) {
        near += weights[k] > 0 && squares[k] < square(limits.reach);
        far += squares[k] > square(limits.first) && squares[k] < square(limits.last);
        shares[k] = std::max(1 - (far * ratio + limits.by_chance) / std::max(near, 1), 0.0);
    }
    return shares;
}

}  // namespace

FitEvidence fit_evidence(const double* residuals, const Eigen::Map<const Slopes>& slopes, const double* weights,
                         const double* shares, int n, const FitLimits& limits) {
    const int dimensions = n > 0 ? static_cast<int>(slopes.rows() / n) : 1;
    std::vector<double> squares(n, 0.0);
    for (int row = 0; row < n * dimensions; ++row) squares[row / dimensions] += residuals[row] * residuals[row];
    const std::vector<int> all = choose(squares, slopes, dimensions, limits), kept = thin(all, limits.enough);
    const auto count = static_cast<Eigen::Index>(kept.size());
    Slopes own(count * dimensions, slopes.cols());
    Vector own_squares(count), own_weights(count), right(count);
    for (Eigen::Index k = 0; k < count; ++k) {
        own.middleRows(k * dimensions, dimensions) = slopes.middleRows(kept[k] * dimensions, dimensions);
        own_squares[k] = squares[kept[k]];
        own_weights[k] = weights[kept[k]];
        right[k] = shares[kept[k]];
    }
    const Slopes leading = own.leftCols(limits.freedoms);
    right.array() *= right_shares(own_squares, right, leading, dimensions, limits).array();
    const Vector relative = (1 + own_squares.array() / (limits.loss_scale * limits.loss_scale)).inverse();
    const Vector pulls = relative.cwiseProduct(own_squares);
    FitEvidence found;
    found.thinning = count > 0 ? static_cast<double>(all.size()) / static_cast<double>(count) : 1.0;
    found.count = right.sum();
    found.pull = right.dot(pulls);
    found.spread = right.cwiseProduct(own_weights).dot(pulls.cwiseProduct(relative));
    found.information = information(own, right);
    found.right.assign(n, 0.0);
    for (Eigen::Index k = 0; k < count; ++k) found.right[kept[k]] = right[k];
    return found;
}

}  // namespace caransac

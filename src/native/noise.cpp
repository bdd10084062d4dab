#include "noise.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "spreads.h"

namespace caransac {

RightMatches right_matches(std::vector<double> distances, double near, int dimensions) {
    const auto volume = [&](double distance) { return dimensions == 1 ? distance : distance * distance; };
    std::vector<double> volumes;
    for (const double distance : distances)
        if (distance < near) volumes.push_back(volume(distance));
    const double all = volume(near), found = static_cast<double>(volumes.size());
    const auto beyond = std::count_if(volumes.begin(), volumes.end(), [&](double v) { return v >= 0.5 * all; });
    const double wrong = 2 * static_cast<double>(beyond), right = found - wrong;
    if (!(right >= 1)) return {0, near};
    // Finds the smallest distance below which half of the inliers lie. The rank of a smaller distance plus its expected
    // outliers is too low, so the ranks approach the solution from below.
    double rank = 0.5 * right, reached = 0;
    auto from = volumes.begin();
    while (true) {
        const auto at = volumes.begin() + std::min<std::ptrdiff_t>(std::ptrdiff_t(std::ceil(rank)), volumes.size()) - 1;
        std::nth_element(from, at, volumes.end());
        reached = *at;
        const double needed = 0.5 * right + wrong * (reached / all);
        if (needed <= static_cast<double>(at - volumes.begin() + 1) || at + 1 == volumes.end()) break;
        rank = needed;
        from = at + 1;
    }
    return {right, dimensions == 1 ? reached : std::sqrt(reached)};
}

double width(const double* u, const double* v, int n, int most) {
    if (n <= 0) return 0;
    const int stride = std::max(n / std::max(most, 1), 1);
    std::vector<double> x, y;
    for (int i = 0; i < n; i += stride) {
        x.push_back(u[i]);
        y.push_back(v[i]);
    }
    const double centre_x = median(x), centre_y = median(y);
    Eigen::Matrix2d moments = Eigen::Matrix2d::Zero();
    for (size_t i = 0; i < x.size(); ++i) {
        const Eigen::Vector2d from_centre(x[i] -= centre_x, y[i] -= centre_y);
        moments += from_centre * from_centre.transpose();
    }
    const Eigen::Matrix2d axes = Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d>(moments).eigenvectors();
    std::vector<double> lengths[2];
    for (int axis = 0; axis < 2; ++axis)  // first across the region
        for (size_t i = 0; i < x.size(); ++i)
            lengths[axis].push_back(std::abs(x[i] * axes(0, axis) + y[i] * axes(1, axis)));
    return median(std::move(lengths[0])) / std::max(median(std::move(lengths[1])), 1e-12);
}

}  // namespace caransac

#include "regions.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "spreads.h"

namespace caransac {
namespace {

// Range of most of the numbers, and the length of a cell in it.
struct Interval {
    double low, cell;
    Interval(const double* values, int n) {
        constexpr int kAsked = 1024;  // number of values in the estimate; between this and twice as many are used
        std::vector<double> some;
        for (int i = 0; i < n; i += std::max(n / kAsked, 1)) some.push_back(values[i]);
        low = ranked(some, some.size() / 100);
        cell = std::max(ranked(some, 99 * some.size() / 100) - low, 1e-12) / Regions::kPerSide;
    }
    int index(double value) const {
        const double offset = (value - low) / cell;  // NaN if lengths overflow; then it is the first cell
        return offset > 0 ? static_cast<int>(std::min(offset, Regions::kPerSide - 1.0)) : 0;
    }
};

std::vector<int> cells_of(const double* u, const double* v, int n) {
    std::vector<int> cells(n);
    if (n == 0) return cells;
    const Interval horizontal(u, n), vertical(v, n);
    for (int i = 0; i < n; ++i) cells[i] = Regions::kPerSide * vertical.index(v[i]) + horizontal.index(u[i]);
    return cells;
}

}  // namespace

Regions::Regions(const Correspondences& correspondences, std::vector<float> weights, double sharpness)
    : weights_(std::move(weights)), sharpness_(sharpness) {
    const Columns<double> points = correspondences.columns();
    cells_[0] = cells_of(points.u1, points.v1, points.n);
    cells_[1] = cells_of(points.u2, points.v2, points.n);
}

double Regions::spread_consensus(const float* msac_scores) const {
    // Uninitialised, because most entries are overwritten.
    const std::unique_ptr<int[]> supporting(new int[size() + 1]);
    int count = 0;
    for (int i = 0; i < size(); ++i) {
        supporting[count] = i;
        count += msac_scores[i] > 0;  // no branch, because it would be unpredictable
    }
    double totals[2][kPerImage] = {};
    for (int k = 0; k < count; ++k) {
        const int i = supporting[k];
        const double score =
            static_cast<double>(weights_[i]) / (1 + sharpness_ * (1 - static_cast<double>(msac_scores[i])));
        for (int image = 0; image < 2; ++image) totals[image][cells_[image][i]] += score;
    }
    double sum = 0;
    for (const auto& of_image : totals)
        for (const double total : of_image) sum += std::sqrt(total);
    return sum;
}

}  // namespace caransac

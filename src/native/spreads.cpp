#include "spreads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace caransac {
namespace {

constexpr double kSpreadInMedians = 1.6;  // of points all over an image
constexpr double kFarthest = 1e100;       // coordinates saturate here: a spread may be as small as a number can be
constexpr int kEnough = 2048;             // evenly spread points tell the median of many more

// The mean of the two in the middle where their number is even. Reorders the values.
double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return values.size() % 2 == 1 ? *middle : 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

}  // namespace

Spread spread_of(const double* u, const double* v, int n) {
    Spread spread;
    if (n == 0) return spread;
    const int step = std::max(n / kEnough, 1);
    const double* columns[2] = {u, v};
    std::vector<double> values, distances;
    for (int c = 0; c < 2; ++c) {
        values.clear();
        for (int i = 0; i < n; i += step) values.push_back(columns[c][i]);
        spread.centre[c] = median(values);
        for (const double value : values) distances.push_back(std::abs(value - spread.centre[c]));
    }
    spread.size = kSpreadInMedians * median(distances);
    return spread;
}

Correspondences in_spreads(const Correspondences& correspondences, const Spread spreads[2]) {
    const Columns<double> from = correspondences.columns();
    const double* columns[2][2] = {{from.u1, from.v1}, {from.u2, from.v2}};
    const size_t n = from.n;
    std::vector<double> points[2];
    for (int image = 0; image < 2; ++image) {
        const Spread& spread = spreads[image];
        points[image].resize(2 * n);
        for (int c = 0; c < 2; ++c)
            for (size_t i = 0; i < n; ++i) {
                const double shifted = columns[image][c][i] - spread.centre[c];
                const double scaled = spread.size > 0 ? shifted / spread.size : shifted;
                points[image][2 * i + c] = std::clamp(scaled, -kFarthest, kFarthest);
            }
    }
    return Correspondences(points[0].data(), points[1].data(), from.n);
}

}  // namespace caransac

#include "spreads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "ranks.h"

namespace caransac {
namespace {

constexpr double kSpreadInMedians = 1.6;  // of points all over an image
constexpr double kFarthest = 1e100;       // coordinates saturate here: a spread may be as small as a number can be
constexpr int kEnough = 2048;             // evenly spread points tell the median of many more
constexpr double kSmallestSpread = 1e-6;  // pixels; below, all points are one

}  // namespace

Spread spread_of(const double* u, const double* v, int n) {
    Spread spread;
    if (n == 0) return spread;
    const int step = std::max(n / kEnough, 1);
    const double* columns[2] = {u, v};
    const size_t some = (n + step - 1) / step;
    std::vector<double> values(some), distances(2 * some);
    for (int c = 0; c < 2; ++c) {
        for (size_t i = 0; i < some; ++i) values[i] = columns[c][i * step];
        spread.centre[c] = median(values);
        for (size_t i = 0; i < some; ++i) distances[c * some + i] = std::abs(values[i] - spread.centre[c]);
    }
    spread.size = kSpreadInMedians * median(std::move(distances));
    return spread;
}

Correspondences in_spreads(const Correspondences& correspondences, const Spread spreads[2]) {
    Correspondences moved = correspondences;
    moved.map([=](int column, double value) {
        const Spread& spread = spreads[column / 2];
        const double shifted = value - spread.centre[column % 2];
        const double scaled = spread.size > 0 ? shifted / spread.size : shifted;
        return std::clamp(scaled, -kFarthest, kFarthest);
    });
    return moved;
}

Normalisation normalisation_of(const Correspondences& pixels) {
    Normalisation found;
    const Columns<double> from = pixels.columns();
    if (from.n == 0) return found;
    const double* columns[4] = {from.u1, from.v1, from.u2, from.v2};
    const size_t n = from.n;
    std::vector<double> distances(4 * n);
    for (size_t c = 0; c < 4; ++c) {
        found.centre[c] = median({columns[c], columns[c] + n});
        for (size_t i = 0; i < n; ++i) distances[c * n + i] = std::abs(columns[c][i] - found.centre[c]);
    }
    const double spread = median(std::move(distances));
    if (spread > kSmallestSpread) found.scale = 0.5 / spread;
    return found;
}

}  // namespace caransac

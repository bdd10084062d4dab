#include "spreads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace caransac {
namespace {

constexpr double kSpreadInMedians = 1.6;  // for points all over an image
constexpr double kFarthest = 1e100;       // coordinates saturate here, because a spread may be extremely small
constexpr int kEnough = 2048;             // this many evenly spread points suffice for the median of many more
constexpr double kSmallestSpread = 1e-6;  // pixels; below it, all points count as one
constexpr size_t kFew = 64;               // for so few values, std::nth_element is as fast
constexpr int kMostPasses = 64;           // a few suffice except for adversarial values

double median_of(double a, double b, double c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

// Estimate of the value of a rank from nine values: their minimum, median or maximum.
double pivot_of(const double* values, size_t n, size_t rank) {
    double some[9];
    for (size_t i = 0; i < 9; ++i) some[i] = values[(i + 1) * n / 10];
    if (rank < n / 10) return *std::min_element(some, some + 9);
    if (rank >= n - n / 10) return *std::max_element(some, some + 9);
    const auto third = [&](int i) { return median_of(some[i], some[i + 1], some[i + 2]); };
    return median_of(third(0), third(3), third(6));
}

// Mean of the values of two adjacent ranks, or the value of one rank. Quickselect from memory to memory, without the
// unpredictable branches of std::nth_element: it takes a quarter of the time.
double mean_of_ranks(std::vector<double> values, size_t low, size_t high) {
    std::vector<double> others(values.size());
    double *from = values.data(), *to = others.data();
    size_t n = values.size();
    for (int pass = 0; pass < kMostPasses && n > kFew; ++pass) {
        const double pivot = pivot_of(from, n, low);
        size_t below = 0, end = n;  // values below the pivot come first, the others last
        for (size_t i = 0; i < n; ++i) {
            const double value = from[i];
            const bool less = value < pivot;
            to[below] = to[end - 1] = value;
            below += less;
            end -= !less;
        }
        if (below == 0 || (low < below && below <= high)) break;  // no progress, or the two ranks are separated
        std::swap(from, to);
        if (high < below) {
            n = below;
        } else {
            from += below;
            n -= below;
            low -= below;
            high -= below;
        }
    }
    std::nth_element(from, from + high, from + n);
    return low == high ? from[high] : 0.5 * (from[high] + *std::max_element(from, from + high));
}

}  // namespace

double ranked(std::vector<double> values, size_t rank) { return mean_of_ranks(std::move(values), rank, rank); }

double median(std::vector<double> values) {
    const size_t n = values.size();
    return mean_of_ranks(std::move(values), (n - 1) / 2, n / 2);
}

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
        const Spread& spread = spreads[column < 2 ? 0 : 1];
        // 3D points are already centred.
        const double shifted = column < 4 ? value - spread.centre[column % 2] : value;
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

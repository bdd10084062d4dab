#include "ranks.h"

#include <algorithm>
#include <utility>

namespace caransac {
namespace {

constexpr size_t kFew = 64;      // values that std::nth_element is as fast for
constexpr int kMostPasses = 64;  // a few suffice but for values that were made to need many

double median_of(double a, double b, double c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

// About the median, by nine values.
double pivot_of(const double* values, size_t n) {
    const auto at = [&](size_t tenth) { return values[tenth * n / 10]; };
    return median_of(median_of(at(1), at(2), at(3)), median_of(at(4), at(5), at(6)), median_of(at(7), at(8), at(9)));
}

// The mean of the values of two ranks, neighbours or the same. Quickselect from memory to memory, without the branches
// of std::nth_element that nobody can predict: a quarter of its time.
double mean_of_ranks(std::vector<double> values, size_t low, size_t high) {
    std::vector<double> others(values.size());
    double *from = values.data(), *to = others.data();
    size_t n = values.size();
    for (int pass = 0; pass < kMostPasses && n > kFew; ++pass) {
        const double pivot = pivot_of(from, n);
        size_t below = 0, end = n;  // those below the pivot come first, the others last
        for (size_t i = 0; i < n; ++i) {
            const double value = from[i];
            const bool less = value < pivot;
            to[below] = to[end - 1] = value;
            below += less;
            end -= !less;
        }
        if (below == 0 || (low < below && below <= high)) break;  // nothing is told apart, or the two ranks are
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

double value_of_rank(std::vector<double> values, size_t rank) { return mean_of_ranks(std::move(values), rank, rank); }

double median(std::vector<double> values) {
    const size_t n = values.size();
    return mean_of_ranks(std::move(values), (n - 1) / 2, n / 2);
}

}  // namespace caransac

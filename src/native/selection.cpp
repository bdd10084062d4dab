#include "selection.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>

#include "hot/kernels.h"

namespace caransac {

namespace {

// The bits of non-negative numbers have the same order as the numbers. The leading bits (exponent and four bits of the
// mantissa) select the bucket.
constexpr int kMantissaBits = 19, kBuckets = 1 << (31 - kMantissaBits);

std::uint32_t bits_of(float value) {
    std::uint32_t bits = 0;
    if (value > 0) std::memcpy(&bits, &value, sizeof(bits));  // also drops NaN
    return bits;
}

}  // namespace

std::vector<int> largest(const float* values, int n, int count) {
    if (count >= n) {
        std::vector<int> all(n);
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    if (count <= 0) return {};
    std::vector<std::uint32_t> bits(n);
    int sizes[kBuckets] = {};
    for (int i = 0; i < n; ++i) ++sizes[(bits[i] = bits_of(values[i])) >> kMantissaBits];
    int bucket = kBuckets - 1, above = 0;  // the bucket of the smallest chosen number, and the count above it
    while (above + sizes[bucket] < count) above += sizes[bucket--];
    std::vector<std::uint32_t> ranked(sizes[bucket] + 1);
    int size = 0;
    for (const std::uint32_t each : bits) {  // no branches here and below, because they would be unpredictable
        ranked[size] = each;
        size += static_cast<int>(each >> kMantissaBits) == bucket;
    }
    ranked.pop_back();
    const auto last = ranked.begin() + (count - above - 1);
    std::nth_element(ranked.begin(), last, ranked.end(), std::greater<std::uint32_t>());
    const std::uint32_t least = *last;
    auto ties = std::count(ranked.begin(), last + 1, least);  // number of chosen ones among equals
    std::vector<int> index(count + 1);
    int chosen = 0;
    for (int i = 0; i < n; ++i) {
        const bool equal = bits[i] == least;
        index[chosen] = i;
        chosen += bits[i] > least || (equal && ties > 0);
        ties -= equal;
    }
    index.pop_back();
    return index;
}

std::vector<int> largest_first(const std::vector<double>& values) {
    std::vector<int> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] > values[b]; });
    return order;
}

std::vector<int> distinct_rows(const float* rows, size_t stride, int n, const std::vector<int>& order, int count,
                               double same) {
    std::vector<int> chosen;
    std::vector<double> lengths;
    const auto dot = [&](int i, int j) {
        return static_cast<double>(kernels().dot(rows + i * stride, rows + j * stride, n));
    };
    for (const int i : order) {
        if (static_cast<int>(chosen.size()) == count) break;
        const double length = std::sqrt(dot(i, i));
        bool differs = true;
        for (size_t k = 0; differs && k < chosen.size(); ++k)
            differs = dot(i, chosen[k]) < same * std::max(length * lengths[k], 1e-12);
        if (!differs) continue;
        chosen.push_back(i);
        lengths.push_back(length);
    }
    return chosen;
}

}  // namespace caransac

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

// The bits of a number that is not negative rise with it. The first of them, exponent and four bits of the mantissa,
// name its bucket.
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
    int bucket = kBuckets - 1, above = 0;  // the bucket of the smallest that is chosen, and how many are above it
    while (above + sizes[bucket] < count) above += sizes[bucket--];
    std::vector<std::uint32_t> ranked(sizes[bucket] + 1);
    int size = 0;
    for (const std::uint32_t each : bits) {  // here and below without branches, which nobody could predict
        ranked[size] = each;
        size += static_cast<int>(each >> kMantissaBits) == bucket;
    }
    ranked.pop_back();
    const auto last = ranked.begin() + (count - above - 1);
    std::nth_element(ranked.begin(), last, ranked.end(), std::greater<std::uint32_t>());
    const std::uint32_t least = *last;
    auto ties = std::count(ranked.begin(), last + 1, least);  // of the equal ones, so many are chosen
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

bool Distinct::keep() {
    const float* last = next();
    const double length = std::sqrt(static_cast<double>(kernels().dot(last, last, n_)));
    for (int i = 0; i < count(); ++i) {
        const double product = static_cast<double>(kernels().dot(last, row(i), n_));
        if (!(product < same_ * std::max(length * lengths_[i], 1e-12))) return false;
    }
    lengths_.push_back(length);
    return true;
}

}  // namespace caransac

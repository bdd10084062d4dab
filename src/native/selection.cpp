#include "selection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "hot/kernels.h"

namespace caransac {

std::vector<int> largest(const float* values, int n, int count) {
    std::vector<int> index(std::max(n, 0));
    std::iota(index.begin(), index.end(), 0);
    if (count >= n) return index;
    index.clear();
    if (count <= 0) return index;
    std::vector<float> numbers(values, values + n);
    for (float& number : numbers)
        if (!(number == number)) number = -INFINITY;
    std::vector<float> ranked = numbers;
    std::nth_element(ranked.begin(), ranked.begin() + (count - 1), ranked.end(), std::greater<float>());
    const float least = ranked[count - 1];
    auto ties = count - std::count_if(numbers.begin(), numbers.end(), [&](float x) { return x > least; });
    for (int i = 0; i < n; ++i)
        if (numbers[i] > least || (numbers[i] == least && ties-- > 0)) index.push_back(i);
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

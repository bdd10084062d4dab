#include "attention.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace caransac {

void gather_rows(const float* scores, int k, const float* rows, int n, int c, float* sums) {
    constexpr int kBlock = 256;  // few enough for sums in single precision
    const size_t size = static_cast<size_t>(k) * c;
    std::vector<double> totals(size);
    std::vector<float> block(size);
    for (int first = 0; first < n; first += kBlock) {
        std::fill(block.begin(), block.end(), 0.0f);
        for (int i = first; i < std::min(first + kBlock, n); ++i) {
            const float* row = rows + static_cast<size_t>(i) * c;
            for (int m = 0; m < k; ++m) {
                const float score = scores[static_cast<size_t>(m) * n + i];
                if (score == 0) continue;  // most: a match agrees with one model or none
                float* to = block.data() + static_cast<size_t>(m) * c;
                for (int j = 0; j < c; ++j) to[j] += score * row[j];
            }
        }
        for (size_t j = 0; j < size; ++j) totals[j] += static_cast<double>(block[j]);
    }
    for (size_t j = 0; j < size; ++j) sums[j] = static_cast<float>(totals[j]);
}

}  // namespace caransac

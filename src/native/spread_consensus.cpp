#include "spread_consensus.h"

#include <cmath>
#include <vector>

namespace caransac {

double spread_consensus(const float* scores, const int* regions, int n, int num_regions) {
    std::vector<double> totals(num_regions);
    for (int i = 0; i < n; ++i) totals[regions[i]] += static_cast<double>(scores[i]);
    double sum = 0;
    for (const double total : totals) sum += std::sqrt(total);
    return sum;
}

}  // namespace caransac

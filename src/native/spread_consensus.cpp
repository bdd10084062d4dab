#include "spread_consensus.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace caransac {

void spread_consensus(const float* scores, int num_models, int n, const int* regions, int num_images, int num_regions,
                      double* out) {
    std::vector<double> totals(num_regions);
    std::vector<int> supporters(n);
    for (int m = 0; m < num_models; ++m) {
        const float* of_model = scores + static_cast<size_t>(m) * n;
        int count = 0;
        for (int i = 0; i < n; ++i) {  // most points are outliers: all images are spared them
            supporters[count] = i;
            count += of_model[i] > 0;
        }
        double sum = 0;
        for (int image = 0; image < num_images; ++image) {
            const int* region = regions + static_cast<size_t>(image) * n;
            std::fill(totals.begin(), totals.end(), 0.0);
            for (int k = 0; k < count; ++k)
                totals[region[supporters[k]]] += static_cast<double>(of_model[supporters[k]]);
            for (const double total : totals) sum += std::sqrt(total);
        }
        out[m] = sum;
    }
}

}  // namespace caransac

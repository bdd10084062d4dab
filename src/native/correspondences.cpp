#include "correspondences.h"

#include <cstddef>
#include <limits>

namespace caransac {

Correspondences::Correspondences(int n)
    : n_(n),
      doubles_(4 * static_cast<size_t>(padded(n)), std::numeric_limits<double>::quiet_NaN()),
      floats_(4 * static_cast<size_t>(padded(n)), std::numeric_limits<float>::quiet_NaN()) {}

Correspondences::Correspondences(const double* points1, const double* points2, int n) : Correspondences(n) {
    for (int i = 0; i < n; ++i) set(i, points1[2 * i], points1[2 * i + 1], points2[2 * i], points2[2 * i + 1]);
}

Correspondences Correspondences::subset(const std::vector<int>& index) const {
    Correspondences chosen(static_cast<int>(index.size()));
    const Columns<double> from = columns();
    for (int i = 0; i < chosen.n_; ++i) {
        const int k = index[i];
        chosen.set(i, from.u1[k], from.v1[k], from.u2[k], from.v2[k]);
    }
    return chosen;
}

void Correspondences::set(int i, double u1, double v1, double u2, double v2) {
    const size_t stride = padded(n_);
    const double values[4] = {u1, v1, u2, v2};
    for (int c = 0; c < 4; ++c) {
        doubles_[c * stride + i] = values[c];
        floats_[c * stride + i] = static_cast<float>(values[c]);
    }
}

}  // namespace caransac

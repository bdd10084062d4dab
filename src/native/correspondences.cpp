#include "correspondences.h"

#include <limits>

namespace caransac {

Correspondences::Correspondences(int n)
    : n_(n),
      doubles_(new double[4 * static_cast<size_t>(padded(n))]),
      floats_(new float[4 * static_cast<size_t>(padded(n))]) {
    for (int c = 0; c < 4; ++c)
        for (int i = n; i < padded(n); ++i) {
            column(doubles_, c)[i] = std::numeric_limits<double>::quiet_NaN();
            column(floats_, c)[i] = std::numeric_limits<float>::quiet_NaN();
        }
}

Correspondences::Correspondences(const double* points1, const double* points2, int n) : Correspondences(n) {
    for (int c = 0; c < 4; ++c) {
        const double* from = (c < 2 ? points1 : points2) + c % 2;
        fill(c, [=](int i) { return from[2 * static_cast<size_t>(i)]; });
    }
}

Correspondences::Correspondences(const Correspondences& other) : Correspondences(other.n_) {
    for (int c = 0; c < 4; ++c) fill(c, [from = other.column(other.doubles_, c)](int i) { return from[i]; });
}

Correspondences Correspondences::subset(const std::vector<int>& index) const {
    Correspondences chosen(static_cast<int>(index.size()));
    const int* rows = index.data();
    for (int c = 0; c < 4; ++c) {
        const double* from = column(doubles_, c);
        chosen.fill(c, [=](int i) { return from[rows[i]]; });
    }
    return chosen;
}

}  // namespace caransac

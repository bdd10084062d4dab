#include "correspondences.h"

#include <limits>

namespace caransac {

Correspondences::Correspondences(int n, int columns)
    : n_(n),
      columns_(columns),
      doubles_(new double[columns * static_cast<size_t>(padded(n))]),
      floats_(new float[columns * static_cast<size_t>(padded(n))]) {
    for (int c = 0; c < columns; ++c)
        for (int i = n; i < padded(n); ++i) {
            column(doubles_, c)[i] = std::numeric_limits<double>::quiet_NaN();
            column(floats_, c)[i] = std::numeric_limits<float>::quiet_NaN();
        }
}

Correspondences::Correspondences(const double* points1, const double* points2, int n, int dimensions)
    : Correspondences(n, 2 + dimensions) {
    for (int c = 0; c < columns_; ++c) {
        const double* from = c < 2 ? points1 + c : points2 + (c - 2);
        const size_t stride = c < 2 ? 2 : dimensions;
        fill(c, [=](int i) { return from[stride * static_cast<size_t>(i)]; });
    }
}

Correspondences::Correspondences(const Correspondences& other) : Correspondences(other.n_, other.columns_) {
    for (int c = 0; c < columns_; ++c) fill(c, [from = other.column(other.doubles_, c)](int i) { return from[i]; });
}

Correspondences Correspondences::subset(const std::vector<int>& index) const {
    Correspondences chosen(static_cast<int>(index.size()), columns_);
    const int* rows = index.data();
    for (int c = 0; c < columns_; ++c) {
        const double* from = column(doubles_, c);
        chosen.fill(c, [=](int i) { return from[rows[i]]; });
    }
    return chosen;
}

}  // namespace caransac

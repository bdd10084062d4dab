// The correspondences of a problem, packed into columns once.
#pragma once

#include <vector>

#include "hot/points.h"

namespace caransac {

// Columns in double and in single precision, padded with NaN: padding scores nothing. Never changes once it is made, so
// that any number of threads may read it.
class Correspondences {
  public:
    // points1, points2: n x 2 finite coordinates.
    Correspondences(const double* points1, const double* points2, int n);
    // Some of them, in the given order. index: numbers from 0 to size() - 1.
    Correspondences subset(const std::vector<int>& index) const;

    int size() const { return n_; }
    Columns<double> columns() const { return view(doubles_); }
    Columns<float> single_columns() const { return view(floats_); }

  private:
    explicit Correspondences(int n);
    void set(int i, double u1, double v1, double u2, double v2);
    template <class Real>
    Columns<Real> view(const std::vector<Real>& data) const {
        const int stride = padded(n_);
        return {data.data(), data.data() + stride, data.data() + 2 * stride, data.data() + 3 * stride, n_};
    }

    int n_;
    std::vector<double> doubles_;
    std::vector<float> floats_;
};

}  // namespace caransac

// The correspondences of a problem, packed into columns once.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "hot/points.h"

namespace caransac {

// Columns in double and in single precision, padded with NaN, which scores zero. An object never changes after Python
// has it, so any number of threads may read it. A point of image 1 matches a point of image 2 or a 3D point: the
// columns are u1, v1, u2, v2 and, for 3D points, w2.
class Correspondences {
  public:
    // points1: n x 2 finite coordinates. points2: n x dimensions; dimensions is two for an image and three for 3D
    // points.
    Correspondences(const double* points1, const double* points2, int n, int dimensions = 2);
    Correspondences(const Correspondences& other);
    Correspondences(Correspondences&& other) = default;
    // A subset in the given order. index: numbers from 0 to size() - 1.
    Correspondences subset(const std::vector<int>& index) const;
    // Transforms all coordinates during construction: map(c, value) is the new value of column c.
    template <class Map>
    void map(Map map) {
        for (int c = 0; c < columns_; ++c) fill(c, [=, from = column(doubles_, c)](int i) { return map(c, from[i]); });
    }
    // Transforms all points of image 0 or 1: move(u, v) changes the coordinates of one point.
    template <class Move>
    void map_image(int image, Move move) {
        double *const u = column(doubles_, 2 * image), *const v = column(doubles_, 2 * image + 1);
        for (int i = 0; i < n_; ++i) move(u[i], v[i]);
        for (int c = 2 * image; c < 2 * image + 2; ++c)
            fill(c, [from = column(doubles_, c)](int i) { return from[i]; });
    }

    int size() const { return n_; }
    int dimensions() const { return columns_ - 2; }  // of the points that match image 1
    Columns<double> columns() const { return view(doubles_); }
    Columns<float> single_columns() const { return view(floats_); }

  private:
    Correspondences(int n, int columns);
    template <class Real>
    Real* column(const std::unique_ptr<Real[]>& data, int c) const {
        return data.get() + static_cast<size_t>(c) * padded(n_);
    }
    template <class Real>
    Columns<Real> view(const std::unique_ptr<Real[]>& data) const {
        const Real* w2 = columns_ == 5 ? column(data, 4) : nullptr;
        return {column(data, 0), column(data, 1), column(data, 2), column(data, 3), n_, w2};
    }
    template <class Value>
    void fill(int c, Value value) {
        double* const doubles = column(doubles_, c);
        float* const floats = column(floats_, c);
        for (int i = 0; i < n_; ++i) {
            doubles[i] = value(i);
            floats[i] = static_cast<float>(doubles[i]);
        }
    }

    int n_, columns_;
    std::unique_ptr<double[]> doubles_;
    std::unique_ptr<float[]> floats_;
};

// Whether a model can be fitted to point i. Meaningful coordinates are of the order of one, and an infinite one would
// make every cost infinite.
inline bool is_usable(const Columns<double>& points, int i) {
    constexpr double kFarthest = 1e6;
    return std::abs(points.u1[i]) < kFarthest && std::abs(points.v1[i]) < kFarthest &&
           std::abs(points.u2[i]) < kFarthest && std::abs(points.v2[i]) < kFarthest &&
           (points.w2 == nullptr || std::abs(points.w2[i]) < kFarthest);
}

}  // namespace caransac

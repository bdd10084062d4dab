// The correspondences of a problem, packed into columns once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hot/points.h"

namespace caransac {

// Columns in double and in single precision, padded with NaN: padding scores nothing. Never changes once Python has it,
// so that any number of threads may read it.
class Correspondences {
  public:
    // points1, points2: n x 2 finite coordinates.
    Correspondences(const double* points1, const double* points2, int n);
    Correspondences(const Correspondences& other);
    Correspondences(Correspondences&& other) = default;
    // Some of them, in the given order. index: numbers from 0 to size() - 1.
    Correspondences subset(const std::vector<int>& index) const;
    // Moves all of them while they are made: map(c, value) is the new value of column c, of u1, v1, u2, v2.
    template <class Map>
    void map(Map map) {
        for (int c = 0; c < 4; ++c) fill(c, [=, from = column(doubles_, c)](int i) { return map(c, from[i]); });
    }
    // Moves all points of an image, 0 or 1: move(u, v) changes the coordinates of one.
    template <class Move>
    void map_image(int image, Move move) {
        double *const u = column(doubles_, 2 * image), *const v = column(doubles_, 2 * image + 1);
        for (int i = 0; i < n_; ++i) move(u[i], v[i]);
        for (int c = 2 * image; c < 2 * image + 2; ++c)
            fill(c, [from = column(doubles_, c)](int i) { return from[i]; });
    }

    int size() const { return n_; }
    Columns<double> columns() const { return view(doubles_); }
    Columns<float> single_columns() const { return view(floats_); }

  private:
    explicit Correspondences(int n);
    template <class Real>
    Real* column(const std::unique_ptr<Real[]>& data, int c) const {
        return data.get() + static_cast<size_t>(c) * padded(n_);
    }
    template <class Real>
    Columns<Real> view(const std::unique_ptr<Real[]>& data) const {
        return {column(data, 0), column(data, 1), column(data, 2), column(data, 3), n_};
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

    int n_;
    std::unique_ptr<double[]> doubles_;
    std::unique_ptr<float[]> floats_;
};

}  // namespace caransac

// Correspondences as columns, the layout the packed kernels read.
#pragma once

#include "isa.h"

namespace caransac {

// Widest pack of any instruction set, in floats: columns are padded to a multiple of it.
constexpr int kPadding = 16;
static constexpr int padded(int n) { return (n + kPadding - 1) / kPadding * kPadding; }

// n correspondences (u1, v1) <-> (u2, v2); entries n .. padded(n) - 1 exist and score nothing: they are NaN in the
// columns used for scoring, and have weight zero where weights are used.
template <class Real>
struct Columns {
    const Real *u1, *v1, *u2, *v2;
    int n;
    const Real* w2 = nullptr;  // third coordinate of what matches a pixel, if that is a point in space
};

// A relative pose as cheirality needs it: the rays R x1 = first (u1, v1, 1) and x2 = (scale u2 + offset, 1).
struct Rays {
    double first[9], translation[3];
    double scale = 1, offset[2] = {0, 0};
};

}  // namespace caransac

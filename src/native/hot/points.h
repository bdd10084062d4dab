// Correspondences as columns, the layout of the packed kernels.
#pragma once

#include "isa.h"

namespace caransac {

// Widest pack of any instruction set, in floats. Columns are padded to a multiple of it.
constexpr int kPadding = 16;
static constexpr int padded(int n) { return (n + kPadding - 1) / kPadding * kPadding; }

// n correspondences (u1, v1) <-> (u2, v2). Entries n .. padded(n) - 1 exist and score zero: they are NaN in columns for
// scoring, and have weight zero if weights are used.
template <class Real>
struct Columns {
    const Real *u1, *v1, *u2, *v2;
    int n;
    const Real* w2 = nullptr;  // third coordinate if a pixel matches a 3D point
};

// A relative pose in the form for cheirality tests: the rays R x1 = first (u1, v1, 1) and x2 = (scale u2 + offset, 1).
struct Rays {
    double first[9], translation[3];
    double scale = 1, offset[2] = {0, 0};
};

}  // namespace caransac

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
};

}  // namespace caransac

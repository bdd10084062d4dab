#pragma once

#include "isa.h"

namespace caransac::CARANSAC_ISA {

constexpr int kSevenPointMaxSolutions = 3;

// Fundamental matrices through seven correspondences, for a batch of samples.
// R. Hartley, A. Zisserman, "Multiple View Geometry", section 11.1.2: F = a F1 + b F2 over the null space of the linear
// constraints, and det F = 0 is a cubic in a / b.
//   x1, x2:        num_samples x 7 x 2 coordinates of the order of one (centred and scaled pixels)
//   models:        room for 3 num_samples 3 x 3 matrices, row by row; x2^T F x1 = 0, Frobenius norm 1
//   sample_index:  the sample each model comes from, ascending
// Returns the number of models. Degenerate or non-finite samples have none.
int seven_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index);

}  // namespace caransac::CARANSAC_ISA

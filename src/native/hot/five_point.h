#pragma once

#include "isa.h"

namespace caransac::CARANSAC_ISA {

constexpr int kFivePointMaxSolutions = 10;

// Essential matrices through five calibrated correspondences, for a batch of samples.
// D. Nistér, "An efficient solution to the five-point relative pose problem", TPAMI 2004: the ten cubic constraints are
// eliminated to a 3 x 3 polynomial matrix in one unknown, whose determinant has degree ten. Here the elimination is a
// Householder QR (stable without pivoting, so several samples run in the lanes of one register), and the roots are
// isolated by Sturm chains.
//   x1, x2:        num_samples x 5 x 2 normalised image coordinates (pixels through the inverse camera matrix)
//   models:        room for 10 num_samples 3 x 3 matrices, row by row; x2^T E x1 = 0, Frobenius norm sqrt(2)
//   sample_index:  the sample each model comes from, ascending
// Returns the number of models. Degenerate or non-finite samples have none.
int five_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index);

// The same with relative poses: for each essential matrix, the pose that puts the five points in front of both cameras,
// if there is one.
//   poses:  room for 10 num_samples 3 x 4 matrices [R | t], row by row; x2 = R x1 + t, |t| = 1
int five_point_poses(const double* x1, const double* x2, int num_samples, double* poses, int* sample_index);

}  // namespace caransac::CARANSAC_ISA

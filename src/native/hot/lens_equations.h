// The inner loop of refinement with lenses: one pass over the points that linearises the robust Sampson cost in the
// original, distorted images.
#pragma once

#include "points.h"

namespace caransac {

// A lens that maps a ray of radius r to r (1 + k1 r^2) up to the radius `last`, which it maps to `end`. Beyond it, the
// tangent is used.
struct LensCurve {
    double k1, last, end, slope;
};

// n correspondences as distances from the image centres and directions to the points; columns of padded(n) finite
// numbers.
struct SeenColumns {
    const double *radius[2], *u[2], *v[2];
    int n;
};

// Gauss-Newton model of cost = sum_i w_i rho(r_i^2) with Cauchy's loss rho, in the nine entries of the matrix and k1 of
// both lenses: half the gradient and half the Hessian (upper triangle, row by row).
constexpr int kLensNumbers = 11;
struct LensEquations {
    double cost, gradient[kLensNumbers], hessian[kLensNumbers * (kLensNumbers + 1) / 2];
};

namespace CARANSAC_ISA {

// Distances are measured between distorted points: distances between rays would shrink if a lens contracts the rays.
// weights: padded(n) numbers, zero in the padding. A loss of infinite scale means least squares, without computing the
// cost.
void lens_equations(const double model[9], const LensCurve lenses[2], const SeenColumns& points, const double* weights,
                    double loss_scale, LensEquations& out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

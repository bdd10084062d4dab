// The inner loop of refinement with lenses: one pass over the points that linearises the robust Sampson cost in the
// images as they are, bent.
#pragma once

#include "points.h"

namespace caransac {

// A lens that sees a ray of radius r at r (1 + k1 r^2), up to the radius `last`, seen at `end`; on along the tangent.
struct LensCurve {
    double k1, last, end, slope;
};

// n correspondences by their distances from the middle of either image and the directions to them, columns of
// padded(n) finite numbers.
struct SeenColumns {
    const double *radius[2], *u[2], *v[2];
    int n;
};

// Gauss-Newton model of cost = sum_i w_i rho(r_i^2), rho Cauchy's loss, in the nine entries of the matrix and k1 of
// either lens: half the gradient and half the Hessian (upper triangle, row by row).
constexpr int kLensNumbers = 11;
struct LensEquations {
    double cost, gradient[kLensNumbers], hessian[kLensNumbers * (kLensNumbers + 1) / 2];
};

namespace CARANSAC_ISA {

// Distances between rays would be the less, the more a lens draws these together: they are those of the points that
// the lenses see. weights: padded(n) numbers, zero in the padding. A loss of infinite scale is that of least squares,
// whose cost is not told.
void lens_equations(const double model[9], const LensCurve lenses[2], const SeenColumns& points, const double* weights,
                    double loss_scale, LensEquations& out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

// The inner loop of refinement: one pass over the points that linearises the robust Sampson cost.
#pragma once

#include "degrees_of_freedom.h"
#include "points.h"

namespace caransac {

// Robust losses rho(s) of the squared residual s with scale c:
enum class Loss {
    kTruncated,  // min(s, c^2)
    kCauchy,     // c^2 log(1 + s / c^2)
};

enum class Precision { kDouble, kSingle };

// Gauss-Newton model of cost = sum_i w_i rho(r_i^2) in the parameters of the matrix, for signed Sampson distances r:
// half the gradient and half the Hessian (upper triangle, row by row).
constexpr int kMaxDof = kFocalPoseDof;
struct NormalEquations {
    double cost, gradient[kMaxDof], hessian[kMaxDof * (kMaxDof + 1) / 2];
};

namespace CARANSAC_ISA {

// precision: precision of the gradient and the Hessian. Residuals and cost are always in double precision, so that
// single precision affects the direction of a step but not the decision whether it helps. jacobian: derivative of the
// matrix, row by row, for each of the dof (5, 7 or 11) parameters. weights: padded(n) numbers, zero in the padding. All
// coordinates must be finite, including the padding.
void normal_equations(const double model[9], const double* jacobian, int dof, const Columns<double>& points,
                      const double* weights, Loss loss, double loss_scale, Precision precision, NormalEquations& out);

// Signed Sampson distances (n) and their derivatives with respect to the nine entries of the matrix (n x 9).
void residual_jacobian(const double model[9], const Columns<double>& points, double* residual, double* jacobian);

// For residuals r of any other kind; padded(n) of them, zero in the padding like the weights. Writes w rho'(r^2) r and
// w times the curvature along r. Returns the cost.
double loss_terms(const double* residuals, const double* weights, int n, Loss loss, double loss_scale, double* pull,
                  double* curvature);

}  // namespace CARANSAC_ISA
}  // namespace caransac

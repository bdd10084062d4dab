// The symmetric transfer error of homographies, x2 ~ H x1.
#pragma once

#include "normal_equations.h"
#include "points.h"

namespace caransac {

// A homography and its inverse, row by row. Their signs give points in front of both cameras a positive third
// coordinate: (H x1)_3 > 0 and (H^-1 x2)_3 > 0.
struct TwoWayHomography {
    double forth[9], back[9];
};

// Sums over the points for one direction, x -> p with error e, weighted by the loss. The normal equations in the nine
// entries of the matrix follow from them. `moments` are the upper triangles of the moments of (x, y, 1), times 1, p_x,
// p_y and p_x^2 + p_y^2; `gradient` is the gradient of half the cost.
struct TransferSums {
    double moments[4][6], gradient[9];
};

namespace CARANSAC_ISA {

// Half the sum of the squared transfer errors in both directions for every point; infinite behind a camera. Room for
// padded(n).
void transfer_errors_sq(const TwoWayHomography& model, const Columns<double>& points, double* out);

// MSAC scores of the points; 0 behind a camera. Room for padded(n).
void homography_scores(const TwoWayHomography& model, const Columns<double>& points, double max_error_sq, float* out);

// Like `top_models`, for homographies.
int top_homographies(const TwoWayHomography* models, int num_models, const Columns<float>& points, double max_error_sq,
                     int k, int* index, double* total);

// Cost sum_i w_i rho(s_i) with the errors s of `transfer_errors_sq`, and the sums of both directions. Points behind a
// camera have the cost of the loss at `kBehind` and no gradient.
void transfer_equations(const TwoWayHomography& model, const Columns<double>& points, const double* weights, Loss loss,
                        double loss_scale, double& cost, TransferSums sums[2]);

}  // namespace CARANSAC_ISA
}  // namespace caransac

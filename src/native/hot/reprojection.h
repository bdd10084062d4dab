// Distances in the image between keypoints and the projections of their 3D points.
#pragma once

#include "normal_equations.h"
#include "points.h"

namespace caransac {

// A 3D point X is projected to scale (1 + k1 r^2) (x, y) + centre, with (x, y, 1) ~ R X + t and r^2 = x^2 + y^2.
struct Projection {
    double rotation[9], translation[3];
    double scale = 1, centre[2] = {0, 0}, k1 = 0;
};

namespace CARANSAC_ISA {

// Squared distance of every keypoint to the projection of its point; infinite behind the camera. Room for padded(n).
void reprojection_errors_sq(const Projection& projection, const Columns<double>& points, double* out);

// MSAC scores of the points, 0 behind the camera. The second function uses single precision, for comparing models. Room
// for padded(n).
void reprojection_scores(const Projection& projection, const Columns<double>& points, double max_error_sq, float* out);
void rough_reprojection_scores(const Projection& projection, const Columns<float>& points, double max_error_sq,
                               float* out);

// Like `top_models`, for projections.
int top_projections(const Projection* projections, int num_models, const Columns<float>& points, double max_error_sq,
                    int k, int* index, double* total);

// Like `normal_equations`, with the distances of `reprojection_errors_sq`. dof: 6 for a rotation vector on the left and
// the translation, 10 with the logarithm of the scale, the centre and k1 after them. Points behind the camera have the
// cost of a huge error and no gradient.
void reprojection_equations(const Projection& projection, int dof, const Columns<double>& points, const double* weights,
                            Loss loss, double loss_scale, Precision precision, NormalEquations& out);

// Differences (n x 2) between the projections of points and their keypoints, and their derivatives (n x 2 x dof).
void reprojection_jacobian(const Projection& projection, int dof, const Columns<double>& points, double* residual,
                           double* jacobian);

}  // namespace CARANSAC_ISA
}  // namespace caransac

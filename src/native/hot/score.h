// Residuals and consensus of models over all correspondences.
#pragma once

#include "points.h"

namespace caransac::CARANSAC_ISA {

// Squared Sampson distances of all points to one model. Room for padded(n).
void residuals_sq(const double model[9], const Columns<double>& points, double* out);

// Whether each point, triangulated with x2 = R x1 + t, lies in front of both cameras: 1 or 0. Room for padded(n).
void positive_depths(const Rays& rays, const Columns<double>& points, double* out);

// MSAC scores 1 - min(r, T^2) / T^2 of all points for squared Sampson distances r: 1 on the model, 0 if the distance is
// T or more or undefined. Room for padded(n).
void msac_scores(const double model[9], const Columns<double>& points, double max_error_sq, float* out);

// The same for the matrix of a pose, with 0 for points behind a camera. Points at infinity count as in front.
void pose_scores(const double model[9], const Rays& rays, const Columns<double>& points, double max_error_sq,
                 float* out);

// The same in single precision, for comparing models.
void rough_msac_scores(const double model[9], const Columns<float>& points, double max_error_sq, float* out);
void rough_pose_scores(const double model[9], const Rays& rays, const Columns<float>& points, double max_error_sq,
                       float* out);

// Sum of the products of two rows of n scores, in single precision.
float dot(const float* a, const float* b, int n);

// Total consensus of one model: the sum of its MSAC scores. Stops and returns -1 as soon as the total can no longer
// reach `at_least`. Single precision per point, double precision across blocks of points.
double consensus(const double model[9], const Columns<float>& points, double max_error_sq, double at_least);

// The k of m candidates with the largest totals, largest first; among equals, the earlier first. If total_of(m,
// at_least) cannot reach at_least, it may return any smaller value. Returns the number of written entries: min(k,
// num_models).
template <class TotalOf>
inline int keep_top(int num_models, int k, int* index, double* total, TotalOf total_of) {
    int count = 0;
    for (int m = 0; m < num_models; ++m) {
        const double at_least = count == k ? total[k - 1] : 0;
        const double candidate = total_of(m, at_least);
        if (count == k && candidate <= at_least) continue;
        int place = count < k ? count++ : k - 1;
        for (; place > 0 && total[place - 1] < candidate; --place) {
            total[place] = total[place - 1];
            index[place] = index[place - 1];
        }
        total[place] = candidate;
        index[place] = m;
    }
    return count;
}

// The k models with the largest consensus and their totals, largest first; among equals, the earlier first. The result
// equals sorting all totals, but models that cannot be among the k best are abandoned early. Returns the number of
// written entries: min(k, num_models).
int top_models(const double* models, int num_models, const Columns<float>& points, double max_error_sq, int k,
               int* index, double* total);

}  // namespace caransac::CARANSAC_ISA

// Residuals and consensus of models over all correspondences.
#pragma once

#include "points.h"

namespace caransac::CARANSAC_ISA {

// Squared Sampson distance of every point to one model; out has room for padded(n).
void residuals_sq(const double model[9], const Columns<double>& points, double* out);

// Whether each point, triangulated under x2 = R x1 + t, lies in front of both cameras: 1 or 0; room for padded(n).
void positive_depths(const Rays& rays, const Columns<double>& points, double* out);

// MSAC score 1 - min(r, T^2) / T^2 of every point, r its squared Sampson distance: 1 on the model, 0 from T on, and 0
// where the distance is not defined. Room for padded(n).
void msac_scores(const double model[9], const Columns<double>& points, double max_error_sq, float* out);

// The same for the matrix of a pose, and 0 for a point behind a camera; infinity counts as in front.
void pose_scores(const double model[9], const Rays& rays, const Columns<double>& points, double max_error_sq,
                 float* out);

// The same in single precision, to compare models by.
void rough_msac_scores(const double model[9], const Columns<float>& points, double max_error_sq, float* out);
void rough_pose_scores(const double model[9], const Rays& rays, const Columns<float>& points, double max_error_sq,
                       float* out);

// Sum of the products of two rows of n scores, in single precision.
float dot(const float* a, const float* b, int n);

// Total consensus of one model, the sum of its MSAC scores. Stops as soon as the total can no longer reach `at_least`,
// and returns -1 then. Single precision per point, double precision across blocks of points.
double consensus(const double model[9], const Columns<float>& points, double max_error_sq, double at_least);

// The k of m candidates with the largest totals, largest first, the earlier one first among equals; total_of(m,
// at_least) may return anything below at_least where it cannot be reached. Returns how many were written: min(k,
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

// The k models with the largest consensus, largest first (the earlier model first among equals), with their totals.
// Exactly what sorting all consensus totals gives, but models that cannot enter the k best are abandoned early.
// Returns how many were written: min(k, num_models).
int top_models(const double* models, int num_models, const Columns<float>& points, double max_error_sq, int k,
               int* index, double* total);

}  // namespace caransac::CARANSAC_ISA

#pragma once

#include "isa.h"

namespace caransac::CARANSAC_ISA {

// Homographies through four correspondences, for a batch of samples.
// R. Hartley, A. Zisserman, "Multiple View Geometry", section 2.3: four points in general position are a projective
// frame, and H maps the frame of one image to that of the other. Only cross products and determinants are needed.
//   x1, x2:        num_samples x 4 x 2 coordinates of the order of one
//   models:        room for num_samples 3 x 3 matrices, row by row; x2 ~ H x1, Frobenius norm 1. The sign gives all
//                  points of the sample a positive third coordinate
//   sample_index:  the sample each model comes from, ascending
// Returns the number of models. A sample has none if three of its points are nearly collinear, or if they have opposite
// orientations in the two images: no camera sees one side of a plane like that (O. Chum, T. Werner, J. Matas, "Epipolar
// geometry estimation via RANSAC benefits from the oriented epipolar constraint", ICPR 2004, use a similar test for F).
int four_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index);

}  // namespace caransac::CARANSAC_ISA

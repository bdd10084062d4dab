#pragma once

#include "isa.h"

namespace caransac::CARANSAC_ISA {

constexpr int kThreePointMaxSolutions = 4;

// Absolute poses through three 3D points and their keypoints, for a batch of samples (P3P).
// Y. Ding, J. Yang, V. Larsson, C. Olsson, K. Astrom, "Revisiting the P3P problem", CVPR 2023: two ratios of the depths
// lie on two conics. A real root of a cubic gives a member of their pencil that is a pair of lines, and the lines
// intersect one of the conics at the ratios. Here the root is the isolated one, found by Newton's method from outside.
// The depths are refined as by M. Persson and K. Nordberg ("Lambda Twist", ECCV 2018).
//   x:             num_samples x 3 x 2 normalised image coordinates
//   X:             num_samples x 3 x 3 coordinates of 3D points
//   poses:         room for 4 num_samples 3 x 4 matrices [R | t], row by row; x ~ R X + t, with the sample in front
//   sample_index:  the sample each pose comes from, ascending
// Returns the number of poses. Samples of collinear or repeated points have none.
int three_point(const double* x, const double* X, int num_samples, double* poses, int* sample_index);

}  // namespace caransac::CARANSAC_ISA

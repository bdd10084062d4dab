// How many degrees of freedom models have, and where they are: the pose, first its rotation; then log_scale, x and y of
// each camera; then k1 of each lens. `kernels/degrees_of_freedom.py` has the same for Python.
#pragma once

namespace caransac {

constexpr int kCameraDof = 3;
constexpr int kPoseDof = 5, kFocalPoseDof = kPoseDof + 2 * kCameraDof, kLensPoseDof = kFocalPoseDof + 2;
constexpr int kFirstOfCamera[2] = {kPoseDof, kPoseDof + kCameraDof};
constexpr int kAbsoluteDof = 6, kAbsoluteFocalDof = kAbsoluteDof + kCameraDof + 1;
constexpr int kFundamentalDof = 7, kHomographyDof = 8;

}  // namespace caransac

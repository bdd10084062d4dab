// Numbers and positions of the degrees of freedom of models: the pose, with its rotation first; then log_scale, x and y
// of each camera; then k1 of each lens. `kernels/degrees_of_freedom.py` is the counterpart in Python.
#pragma once

namespace caransac {

constexpr int kCameraDof = 3;
constexpr int kPoseDof = 5, kFocalPoseDof = kPoseDof + 2 * kCameraDof, kLensPoseDof = kFocalPoseDof + 2;
constexpr int kFirstOfCamera[2] = {kPoseDof, kPoseDof + kCameraDof};
constexpr int kAbsoluteDof = 6, kAbsoluteFocalDof = kAbsoluteDof + kCameraDof + 1;
constexpr int kFundamentalDof = 7, kHomographyDof = 8;

}  // namespace caransac

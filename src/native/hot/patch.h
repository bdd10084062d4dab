// Alignment of a patch in one image with the same patch in another image.
#pragma once

#include "points.h"

namespace caransac {

constexpr int kMaxPatchRadius = 10;
constexpr int kPatchParameters = 6;  // a shift, and the changes of an affine map

// Grey levels around a point. The origin is the position of the first pixel in the image.
struct Window {
    const float* grey;
    int width, height, stride;
    double origin[2];
};

// The pixels of a patch relative to its centre, and a Gaussian window whose weights add up to one. Padding has weight
// 0.
constexpr int kMostPatchPixels =
    ((2 * kMaxPatchRadius + 1) * (2 * kMaxPatchRadius + 1) + kPadding - 1) / kPadding * kPadding;
struct PatchShape {
    int radius, n;  // n: pixels with padding
    alignas(64) float x[kMostPatchPixels], y[kMostPatchPixels], weight[kMostPatchPixels];
};

// How patches are aligned. Lengths are in pixels of the windows.
struct PatchOptions {
    int max_steps;            // of Gauss-Newton
    double max_step;          // longest step of the shift
    double max_shift;         // the alignment ends if the shift exceeds it
    double min_step;          // the alignment has converged if a step is shorter
    double affine_deviation;  // of the entries of the affine map, before the patches are compared; 0 keeps the map
};

// Alignment of two patches. A patch around x in the first image is the patch around centre + map (y - x) in the second.
struct PatchAlignment {
    double centre[2], map[4];
    double before, after;   // correlation at the start and at the end
    double information[3];  // xx, xy, yy of the inverse covariance of the centre
};

namespace CARANSAC_ISA {

// Aligns patches by the inverse compositional algorithm (Baker and Matthews, IJCV 2004) with grey levels that are
// normalised to mean 0 and deviation 1 under a Gaussian window. Returns false if a patch has no texture.
//   point:     position in the first image, a whole number of pixels
//   alignment: centre and map at the start; the result
// Points of a patch outside of [low, high] of the first or second image have no weight.
bool align_patch(const PatchShape& shape, const Window& first, const int point[2], const Window& second,
                 const int size1[2], const int size2[2], const PatchOptions& options, PatchAlignment& alignment);

}  // namespace CARANSAC_ISA
}  // namespace caransac

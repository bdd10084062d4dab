// Matches refined in two photographs.
#pragma once

#include "hot/patch.h"
#include "photograph.h"

namespace caransac {

constexpr int kMaxLevel = 3;  // largest pyramid level: a scale of eight

struct PointPair {
    double x1, y1, x2, y2;
};

// Estimates the local affine map from image 1 to image 2 at each of n matches from its nearest neighbours, by least
// squares with a prior at the map of all matches. Some neighbours may be wrong matches. out: n x 4.
void local_maps(const PointPair* matches, int n, int neighbours, double* out);

// A match after the alignment of its patches.
struct RefinedMatch {
    double x2, y2;
    double map[4];
    double before, after;   // correlations
    double information[3];  // of the position in image 2, per squared pixel
    bool aligned;
};

// The square of (2 radius + 1)^2 pixels.
PatchShape patch_shape(int radius);

// Moves the second point of each match to where its patch is most similar. Patches are read from a pyramid level; the
// lengths in `options` are in its pixels. Where the map changes the scale, the larger patch is read from a higher level
// with the resolution of the smaller one.
void refine_matches(const Photograph& image1, const Photograph& image2, const PointPair* matches, const double* maps,
                    int n, int level, int radius, const PatchOptions& options, RefinedMatch* out);

}  // namespace caransac

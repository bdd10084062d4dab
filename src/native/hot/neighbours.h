// Agreement of each correspondence with its spatial neighbours: evidence for a match without a model.
#pragma once

#include "grid.h"
#include "isa.h"

namespace caransac {

constexpr int kNeighbours = 8;
constexpr int kNeighbourFeaturesPerImage = 9;
constexpr int kNeighbourFeatures = 2 * kNeighbourFeaturesPerImage;

namespace CARANSAC_ISA {

// Compares, for every correspondence, its nearest neighbours in this image with their positions in the other image.
// Matches of one surface move together, wrong matches scatter (the idea of GMS, Bian et al., CVPR 2017, with distances
// instead of grid counts). Points are in units of their spread in each image. The nearest neighbours are determined in
// single precision: if squared distances agree to 2e-4, either may be chosen. The features are computed from the exact
// points.
//   stride:  from one row of the matrix to the next
//   out:     one image's half of the n x kNeighbourFeatures matrix:
//              log distance in the other image of the 1st, 2nd, 4th and 8th nearest there,
//              log change of position relative to the distance, 1st, 2nd and 4th smallest,
//              log distance of the farthest neighbour in this image,
//              fraction of the neighbours that stay close in the other image.
void neighbour_features(const Grid& grid, int stride, float* out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

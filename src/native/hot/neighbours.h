// Agreement of each correspondence with its spatial neighbours: evidence about a match that needs no model.
#pragma once

#include "grid.h"
#include "isa.h"

namespace caransac {

constexpr int kNeighbours = 8;
constexpr int kNeighbourFeaturesPerImage = 9;
constexpr int kNeighbourFeatures = 2 * kNeighbourFeaturesPerImage;

namespace CARANSAC_ISA {

// For every correspondence, the nearest matches in this image and what became of them in the other. Matches of one
// surface move together, wrong matches scatter (the idea of GMS, Bian et al., CVPR 2017, with distances instead of grid
// counts). Points are in units of their spread in each image. Which neighbours are the nearest is decided in single
// precision: where squared distances agree to 2e-4, either may be taken. The features come from the exact points.
//   stride:  from one row of the matrix to the next
//   out:     one image's half of the n x kNeighbourFeatures matrix:
//              log distance in the other image of the 1st, 2nd, 4th and 8th nearest there,
//              log change of position relative to the distance, 1st, 2nd and 4th smallest,
//              log distance of the farthest neighbour in this image,
//              fraction of the neighbours that stay close in the other image.
void neighbour_features(const Grid& grid, int stride, float* out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

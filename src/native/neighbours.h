// Agreement of each correspondence with its spatial neighbours: evidence about a match that needs no model.
#pragma once

#include "points.h"

namespace caransac {

constexpr int kNeighbours = 8;
constexpr int kNeighbourFeaturesPerImage = 9;
constexpr int kNeighbourFeatures = 2 * kNeighbourFeaturesPerImage;

// For every correspondence, the nearest matches in image 1 and what became of them in image 2, and the same with the
// images exchanged. Matches of one surface move together, wrong matches scatter (the idea of GMS, Bian et al., CVPR
// 2017, with distances instead of grid counts). Points are in units of their spread in each image.
//   min_distance: closer neighbours do not count: detectors put several keypoints on one corner, and those agree
//                 with each other even when the match is wrong
//   out:          n x kNeighbourFeatures; for each image
//                   log distance in the other image of the 1st, 2nd, 4th and 8th nearest there,
//                   log change of position relative to the distance, 1st, 2nd and 4th smallest,
//                   log distance of the farthest neighbour in this image,
//                   fraction of the neighbours that stay close in the other image.
void neighbour_features(const Columns<double>& points, double min_distance, double* out);

}  // namespace caransac

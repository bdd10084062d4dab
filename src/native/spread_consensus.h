// Consensus that counts evidence all over the images for more than a heap of it.
#pragma once

namespace caransac {

// For each model the sum, over the regions of all images, of the square root of the total score in each.
//   scores:  num_models x n scores, not negative
//   regions: num_images x n, the region of each point, 0 .. num_regions - 1
//   out:     num_models sums
void spread_consensus(const float* scores, int num_models, int n, const int* regions, int num_images, int num_regions,
                      double* out);

}  // namespace caransac

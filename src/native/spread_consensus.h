// Consensus that counts evidence all over an image for more than a heap of it.
#pragma once

namespace caransac {

// The sum over regions of the square root of the total score in each.
//   scores:  n scores of one model
//   regions: the region of each point, 0 .. num_regions - 1
double spread_consensus(const float* scores, const int* regions, int n, int num_regions);

}  // namespace caransac

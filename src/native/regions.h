// The cells of a grid over each image, for measuring how the consensus of a model is spread.
#pragma once

#include <vector>

#include "correspondences.h"

namespace caransac {

// The cell of every correspondence in each image. The grid has kPerSide rows and columns and covers most points: it
// extends from the first to the last percentile of the coordinates of a subset.
class Regions {
  public:
    static constexpr int kPerSide = 16, kPerImage = kPerSide * kPerSide;
    // weights: weight of each correspondence, not negative. sharpness: see `spread_consensus`.
    Regions(const Correspondences& correspondences, std::vector<float> weights, double sharpness);

    int size() const { return static_cast<int>(cells_[0].size()); }
    const int* cells(int image) const { return cells_[image].data(); }

    // Consensus that prefers evidence all over the images to a cluster, and close matches to distant ones: the sum of
    // the square roots of the totals in the cells of both images. A match of weight w and MSAC score s > 0 adds w / (1
    // + sharpness (1 - s)) to its cell. With s = 1 - r^2 / T^2 this is Cauchy's kernel of scale T / sqrt(sharpness).
    // msac_scores: size() scores of a model, not negative.
    double spread_consensus(const float* msac_scores) const;

  private:
    std::vector<int> cells_[2];
    std::vector<float> weights_;
    double sharpness_;
};

}  // namespace caransac

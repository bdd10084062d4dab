// The cells of a grid over each image: where the evidence for a model lies, and what each match counts there.
#pragma once

#include <vector>

#include "correspondences.h"

namespace caransac {

// The cell of every correspondence in either image, of a grid with kPerSide rows and columns over where most points
// are: between the first and the last percentile of the coordinates of some of them.
class Regions {
  public:
    static constexpr int kPerSide = 16, kPerImage = kPerSide * kPerSide;
    // weights: what each match counts, not negative; one for every correspondence. sharpness: how much less a score
    // that is not the largest counts, see `spread_consensus`.
    Regions(const Correspondences& correspondences, std::vector<float> weights, double sharpness);

    int size() const { return static_cast<int>(cells_[0].size()); }
    const int* cells(int image) const { return cells_[image].data(); }

    // Consensus that counts evidence all over the images for more than a cluster of it, and close matches for more than
    // near ones: the sum, over the cells of both images, of the square root of the total of w / (1 + sharpness (1 - s))
    // in each, over the matches of weight w and MSAC score s > 0. With s = 1 - r^2 / T^2 that is Cauchy's kernel of
    // scale T / sqrt(sharpness). msac_scores: size() scores of a model, not negative.
    double spread_consensus(const float* msac_scores) const;

  private:
    std::vector<int> cells_[2];
    std::vector<float> weights_;
    double sharpness_;
};

}  // namespace caransac

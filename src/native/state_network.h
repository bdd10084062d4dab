// The state network with packed weights; caransac/learned/state_network.py documents the equations.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "hot/state_network.h"
#include "packed_layers.h"

namespace caransac {

// The layers of its parts, which must fit together: message and digest have hidden layers and end without an
// activation. Any layer with as many outputs as inputs may be residual.
struct StateParts {
    std::vector<PlainLayer> init, decoder, message, digest, update;
};

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// rows -> rows weight + bias.
struct AffineMap {
    RowMatrix weight, bias;
};

class StateNetwork {
  public:
    explicit StateNetwork(const StateParts& parts);  // copies the weights
    int num_features() const { return inputs_of(init_.view()); }
    int width() const { return outputs_of(init_.view()); }
    // Initial states from side information (n x num_features).
    void first(const float* side, int n, const StateOutput& out) const;
    // Updated states from states (n x width) and the scores of one or more models.
    void update(const float* states, const Scores& scores, const StateOutput& out) const;

  private:
    // Maps the scores of a match to the digest's first layer, or to the input of that layer if it is residual. It
    // depends on the scores of this call: (k x outputs).
    std::vector<float> digest_weight(const float* states, const Scores& scores, const int* rows, int count) const;

    // Consecutive affine maps are merged: the end of the message and the start of the digest, with the sum over the
    // matches in between; and the end of the digest and the start of the update. The layers below do not contain the
    // merged parts. A digest that starts with a residual layer needs the input of that layer and is not merged with the
    // message.
    PackedLayers init_, decoder_, message_, digest_, explained_, unexplained_;
    AffineMap gathered_;
    bool starts_residual_ = false;
};

}  // namespace caransac

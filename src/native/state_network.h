// The state network with its weights packed; caransac/learned/state_network.py has the equations.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "hot/state_network.h"
#include "packed_layers.h"

namespace caransac {

// The layers of its parts, which fit together: message and digest have hidden layers and end without an activation. Any
// layer that keeps its width may be residual.
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
    // From side information (n x num_features).
    void first(const float* side, int n, const StateOutput& out) const;
    // After seeing the scores of one model or more, from states (n x width).
    void update(const float* states, const Scores& scores, const StateOutput& out) const;

  private:
    // What takes the scores of a match to the digest's first layer, or to what that layer reads where it is residual,
    // by the scores of this call: (k x outputs).
    std::vector<float> digest_weight(const float* states, const Scores& scores, const int* rows, int count) const;

    // Affine maps that follow each other are one: the end of the message and the start of the digest, with the sum over
    // the matches between; the end of the digest and the start of the update. The layers lack these ends. A digest that
    // starts with a residual layer needs what this layer reads, and is not joined to the message.
    PackedLayers init_, decoder_, message_, digest_, explained_, unexplained_;
    AffineMap gathered_;
    bool starts_residual_ = false;
};

}  // namespace caransac

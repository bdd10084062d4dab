// Layers of networks with their memory, as the kernels read them.
#pragma once

#include <vector>

#include "aligned_floats.h"
#include "hot/layers.h"

namespace caransac {

// A layer as its weights are stored: weight (inputs x outputs), row by row, and bias (outputs).
struct PlainLayer {
    const float *weight, *bias;
    int inputs, outputs;
    Activation activation;
    bool residual;
};

class PackedLayers {
  public:
    PackedLayers() = default;
    explicit PackedLayers(const std::vector<PlainLayer>& layers);
    void add(const PlainLayer& layer);
    Layers view() const { return {layers_.data(), static_cast<int>(layers_.size())}; }

  private:
    std::vector<AlignedFloats> memory_;  // each stays in place when the vector of them grows
    std::vector<Layer> layers_;
};

}  // namespace caransac

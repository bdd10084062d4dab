// Layers of networks and their memory, in the layout of the kernels.
#pragma once

#include <vector>

#include "aligned_floats.h"
#include "hot/layers.h"

namespace caransac {

// A layer in the layout of weights files: weight (inputs x outputs), row by row, and bias (outputs).
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
    std::vector<AlignedFloats> memory_;  // the floats stay in place when this vector grows
    std::vector<Layer> layers_;
};

}  // namespace caransac

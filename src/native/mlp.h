// Small networks applied to every point.
#pragma once

#include "isa.h"

namespace caransac {

enum class Activation { kNone, kLeakyRelu, kTanh };

constexpr int kMaxLayerWidth = 128;  // outputs of a layer, the paper's width
constexpr float kLeak = 0.01f;

// y = activation(x weight + bias), plus x when residual (the layer then keeps its width).
struct Layer {
    const float* weight;  // inputs x kMaxLayerWidth, zero beyond the outputs
    const float* bias;    // kMaxLayerWidth, likewise
    int inputs, outputs;
    Activation activation;
    bool residual;
};

namespace CARANSAC_ISA {

// Applies the layers to every row of x (rows x inputs of the first layer); out: rows x outputs of the last one.
// A few rows at a time go through all layers, so that everything between stays in the cache. Matrix libraries are made
// for larger matrices, and leave the bias and the activation to further passes over memory.
void mlp(const float* x, int rows, const Layer* layers, int num_layers, float* out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

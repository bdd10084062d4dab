// Small networks applied to every point.
#pragma once

#include "isa.h"
#include "points.h"

namespace caransac {

enum class Activation { kNone, kLeakyRelu, kTanh };

constexpr int kMaxLayerWidth = 128;  // outputs of a layer, the paper's width
constexpr int kMaxInputs = 1024;     // of the first layer: room for the descriptors of a match
constexpr float kLeak = 0.01f;

// y = activation(x weight + bias), plus x when residual (the layer then keeps its width).
struct Layer {
    const float* weight;  // padded(outputs) / kPadding panels of inputs x kPadding, zero beyond the outputs
    const float* bias;    // padded(outputs), likewise
    int inputs, outputs;
    Activation activation;
    bool residual;
};

constexpr int kMlpBlock = 48;  // rows that go through all layers together

// Floats that the kernel needs beside: a block of inputs, and of the outputs of two layers. Too many for the stack of
// some threads.
static inline int mlp_scratch(const Layer* layers, int num_layers) {
    int widest = 0;
    for (int l = 0; l < num_layers; ++l) widest = layers[l].outputs > widest ? layers[l].outputs : widest;
    return kMlpBlock * (padded(layers[0].inputs) + 2 * padded(widest));
}

// Columns of the first layer's input, wherever they are: several of these stand side by side.
struct Input {
    const float* data;
    long long row_stride, column_stride;
    int columns;
};

namespace CARANSAC_ISA {

// Applies the layers to every row of the inputs; out: rows x outputs of the last layer; scratch: mlp_scratch(layers)
// floats.
// A few rows at a time go through all layers, so that everything between stays in the cache. Matrix libraries are made
// for larger matrices, and leave the bias and the activation to further passes over memory.
void mlp(const Input* inputs, int num_inputs, int rows, const Layer* layers, int num_layers, float* scratch,
         float* out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

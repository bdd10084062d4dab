// Layers of small networks, and the blocks of rows that go through them.
#pragma once

#include "points.h"

namespace caransac {

enum class Activation { kNone, kLeakyRelu, kTanh };

constexpr int kMaxLayerWidth = 128;  // maximum number of outputs of a layer: the paper's width
constexpr int kMaxInputs = 1024;     // maximum number of inputs of the first layer: room for the descriptors of a match
constexpr float kLeak = 0.01f;

// y = activation(x weight + bias), plus x if residual (the layer then has as many outputs as inputs).
struct Layer {
    const float* weight;  // padded(outputs) / kPadding panels of inputs x kPadding, zero beyond the outputs
    const float* bias;    // padded(outputs), zero beyond the outputs
    int inputs, outputs;
    Activation activation;
    bool residual;
};

// A sequence of layers.
struct Layers {
    const Layer* layers;
    int count;
};
static inline int inputs_of(const Layers& network) { return network.layers[0].inputs; }
static inline int outputs_of(const Layers& network) { return network.layers[network.count - 1].outputs; }

// A block: rows of numbers that go through all layers together, stored as panels of kPadding columns, row by row.
// Layers compute whole tiles of rows; the values in rows and columns beyond the last ones are arbitrary.
constexpr int kBlock = 48;
constexpr int kTile = 12;
constexpr int kPanel = kBlock * kPadding;
static constexpr int block_size(int columns) { return padded(columns) / kPadding * kPanel; }
static constexpr int whole_tiles(int rows) { return (rows + kTile - 1) / kTile * kTile; }

// Number of floats for the outputs of the hidden layers: two blocks of the widest layer. This is too much for the stack
// of some threads.
static inline int hidden_size(const Layers& network) {
    int widest = 1;
    for (int l = 0; l + 1 < network.count; ++l)
        widest = network.layers[l].outputs > widest ? network.layers[l].outputs : widest;
    return 2 * block_size(widest);
}

}  // namespace caransac

// Small networks applied to every point.
#pragma once

#include "isa.h"
#include "layers.h"

namespace caransac {

// Columns of the first layer's input. Several of them are placed side by side.
struct Input {
    const float* data;
    long long row_stride, column_stride;
    int columns;
};

// Number of scratch floats: blocks of inputs, of the outputs of hidden layers, and of results. They must be zero when
// the kernel is called.
static inline int mlp_scratch(const Layers& network) {
    return block_size(inputs_of(network)) + hidden_size(network) + block_size(outputs_of(network));
}

namespace CARANSAC_ISA {

// Applies the layers to every row of the inputs; out: rows x outputs of the last layer; scratch: mlp_scratch(network)
// floats.
void mlp(const Input* inputs, int num_inputs, int rows, const Layers& network, float* scratch, float* out);

}  // namespace CARANSAC_ISA
}  // namespace caransac

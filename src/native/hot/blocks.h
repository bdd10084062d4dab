// Small networks applied to blocks of rows; shared by the kernels of all networks.
//
// A few rows at a time go through all layers, so that intermediate results stay in the cache. Matrix libraries are made
// for larger matrices and need further passes over memory for bias and activation.
#pragma once

#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// Position of the number in a row and a column.
inline float* at(float* block, int r, int column) {
    return block + column / kPadding * kPanel + r * kPadding + column % kPadding;
}

// Rows are short: calling memcpy would take longer than the copy.
inline void copy(const float* from, int count, float* to) {
    int i = 0;
    for (; i + kFloats <= count; i += kFloats) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
}

// Calls work(r, column, count) for the piece of every row in every panel. count is constant for whole pieces.
template <class Work>
inline void for_each_piece(int rows, int columns, const Work& work) {
    int column = 0;
    for (; column + kPadding <= columns; column += kPadding)
        for (int r = 0; r < rows; ++r) work(r, column, kPadding);
    if (column < columns)
        for (int r = 0; r < rows; ++r) work(r, column, columns - column);
}

// Applies one layer to a block of rows; out is another block.
void apply(const float* x, int rows, const Layer& layer, float* out);

// Applies all layers to a block of rows; hidden: hidden_size(network) floats.
inline void apply(const float* x, int rows, const Layers& network, float* hidden, float* out) {
    float* const halves[2] = {hidden, hidden + hidden_size(network) / 2};
    for (int l = 0; l < network.count; ++l) {
        float* to = l + 1 == network.count ? out : halves[l % 2];
        apply(x, rows, network.layers[l], to);
        x = to;
    }
}

}  // namespace caransac::CARANSAC_ISA

// Small networks applied to blocks of rows: what the kernels of all networks share.
//
// A few rows at a time go through all layers, so that everything between stays in the cache. Matrix libraries are made
// for larger matrices, and leave the bias and the activation to further passes over memory.
#pragma once

#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// Where the number of a row and a column is.
inline float* at(float* block, int r, int column) {
    return block + column / kPadding * kPanel + r * kPadding + column % kPadding;
}

// Rows are short: a call of memcpy would take longer than the copy.
inline void copy(const float* from, int count, float* to) {
    int i = 0;
    for (; i + kFloats <= count; i += kFloats) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
}

// Calls work(r, column, count) for the piece of every row in every panel, with a constant count for whole ones.
template <class Work>
inline void for_each_piece(int rows, int columns, const Work& work) {
    int column = 0;
    for (; column + kPadding <= columns; column += kPadding)
        for (int r = 0; r < rows; ++r) work(r, column, kPadding);
    if (column < columns)
        for (int r = 0; r < rows; ++r) work(r, column, columns - column);
}

// A block of rows through one layer; out is another block.
void apply(const float* x, int rows, const Layer& layer, float* out);

// A block of rows through all layers; hidden: hidden_size(network) floats.
inline void apply(const float* x, int rows, const Layers& network, float* hidden, float* out) {
    float* const halves[2] = {hidden, hidden + hidden_size(network) / 2};
    for (int l = 0; l < network.count; ++l) {
        float* to = l + 1 == network.count ? out : halves[l % 2];
        apply(x, rows, network.layers[l], to);
        x = to;
    }
}

}  // namespace caransac::CARANSAC_ISA

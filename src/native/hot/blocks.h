// Small networks applied to blocks of rows: what the kernels of all networks share.
//
// A few rows at a time go through all layers, so that everything between stays in the cache. Matrix libraries are made
// for larger matrices, and leave the bias and the activation to further passes over memory.
#pragma once

#include "activation.h"
#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// Rows are short: a call of memcpy would take longer than the copy.
inline void copy(const float* from, int count, float* to) {
    int i = 0;
    for (; i + kFloats <= count; i += kFloats) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
}

// Where the number of a row and a column is.
inline float* at(float* block, int r, int column) {
    return block + column / kPadding * kPanel + r * kPadding + column % kPadding;
}

// Row r of a block from `columns` numbers, and back.
inline void copy_to_block(const float* from, int columns, int r, float* block) {
    int first = 0;
    for (; first + kPadding <= columns; first += kPadding) copy(from + first, kPadding, at(block, r, first));
    if (first < columns) copy(from + first, columns - first, at(block, r, first));
}

inline void copy_from_block(float* block, int columns, int r, float* to) {
    int first = 0;
    for (; first + kPadding <= columns; first += kPadding) copy(at(block, r, first), kPadding, to + first);
    if (first < columns) copy(at(block, r, first), columns - first, to + first);
}

// The layer's outputs of kRows rows and of kPacks packs of columns, whose sums stay in registers.
template <Activation kActivation, int kRows, int kPacks>
inline void tile(const float* x, const Layer& layer, int column, float* out) {
    const float* weight = layer.weight + column / kPadding * kPadding * layer.inputs + column % kPadding;
    const int offset = column / kPadding * kPanel + column % kPadding;
    Floats sums[kRows][kPacks];
    for (int p = 0; p < kPacks; ++p)
        for (int r = 0; r < kRows; ++r) sums[r][p] = load(layer.bias + column + p * kFloats);
    const float* panel = x;
    for (int first = 0; first < layer.inputs; first += kPadding, panel += kPanel) {
        const int count = layer.inputs - first < kPadding ? layer.inputs - first : kPadding;
        for (int i = 0; i < count; ++i, weight += kPadding) {
            Floats w[kPacks];
            for (int p = 0; p < kPacks; ++p) w[p] = load(weight + p * kFloats);
            for (int r = 0; r < kRows; ++r)
                for (int p = 0; p < kPacks; ++p) sums[r][p] += panel[r * kPadding + i] * w[p];
        }
    }
    for (int r = 0; r < kRows; ++r)
        for (int p = 0; p < kPacks; ++p) {
            const int at = offset + r * kPadding + p * kFloats;
            const Floats value = activation<kActivation>(sums[r][p]);
            store(out + at, layer.residual ? value + load(x + at) : value);
        }
}

template <Activation kActivation, int kPacks>
inline void apply_panel(const float* x, int rows, const Layer& layer, int column, float* out) {
    constexpr int kRows = kTile / kPacks;  // sums enough to hide their latency, few enough for the registers
    for (int r = 0; r < rows; r += kRows)
        tile<kActivation, kRows, kPacks>(x + r * kPadding, layer, column, out + r * kPadding);
}

template <Activation kActivation>
void apply(const float* x, int rows, const Layer& layer, float* out) {
    constexpr int kPacks = kFloats < kPadding ? 2 : 1;
    for (int column = 0; column < layer.outputs; column += kPacks * kFloats) {
        if (kPacks == 1 || layer.outputs - column <= kFloats)
            apply_panel<kActivation, 1>(x, rows, layer, column, out);
        else
            apply_panel<kActivation, kPacks>(x, rows, layer, column, out);
    }
}

// A block of rows through one layer; out is another block.
inline void apply(const float* x, int rows, const Layer& layer, float* out) {
    switch (layer.activation) {
        case Activation::kNone:
            return apply<Activation::kNone>(x, rows, layer, out);
        case Activation::kLeakyRelu:
            return apply<Activation::kLeakyRelu>(x, rows, layer, out);
        case Activation::kTanh:
            return apply<Activation::kTanh>(x, rows, layer, out);
    }
}

// A block of rows through all layers; hidden: hidden_size(network) floats.
inline void apply(const float* x, int rows, const Layers& network, float* hidden, float* out) {
    float* const halves[2] = {hidden, hidden + hidden_size(network) / 2};
    for (int l = 0; l < network.count; ++l) {
        float* to = l + 1 == network.count ? out : halves[l % 2];
        apply(x, whole_tiles(rows), network.layers[l], to);
        x = to;
    }
}

}  // namespace caransac::CARANSAC_ISA

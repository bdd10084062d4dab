// Small networks applied to blocks of rows: what the kernels of all networks share.
//
// A few rows at a time go through all layers, so that everything between stays in the cache. Matrix libraries are made
// for larger matrices, and leave the bias and the activation to further passes over memory.
#pragma once

#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// tanh x = x P(x^2) / Q(x^2), the ratio of degrees 4 and 4 nearest in the maximum norm up to where tanh is one to
// single precision; good to 4e-7 with the rounding.
constexpr float kSaturated = 9;
constexpr float kNumerator[] = {1.31842219e-08f, 2.04718296e-05f, 0.00348658186f, 0.133731977f, 0.999999906f};
constexpr float kDenominator[] = {7.70266285e-07f, 0.000327138531f, 0.0258419791f, 0.467064945f, 1.0f};

inline Floats polynomial(const float (&coefficients)[5], const Floats& x) {
    Floats value = broadcast(coefficients[0]);
    for (int k = 1; k < 5; ++k) value = value * x + coefficients[k];
    return value;
}

inline Floats hyperbolic_tangent(const Floats& x) {
    const Floats clamped = smaller(broadcast(kSaturated), larger(broadcast(-kSaturated), x));
    const Floats square = clamped * clamped;
    return clamped * polynomial(kNumerator, square) / polynomial(kDenominator, square);
}

template <Activation kActivation>
inline Floats activation(const Floats& x) {
    if constexpr (kActivation == Activation::kTanh) return hyperbolic_tangent(x);
    if constexpr (kActivation == Activation::kLeakyRelu) return larger(kLeak * x, x);
    return x;
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
inline void apply_columns(const float* x, int rows, const Layer& layer, int column, float* out) {
    constexpr int kRows =
        kTile / kPacks;  // enough independent sums to hide their latency, few enough for the registers
    for (int r = 0; r < rows; r += kRows)
        tile<kActivation, kRows, kPacks>(x + r * kPadding, layer, column, out + r * kPadding);
}

template <Activation kActivation>
void apply(const float* x, int rows, const Layer& layer, float* out) {
    constexpr int kPacks = kFloats < kPadding ? 2 : 1;
    for (int column = 0; column < layer.outputs; column += kPacks * kFloats) {
        if (kPacks == 1 || layer.outputs - column <= kFloats)
            apply_columns<kActivation, 1>(x, rows, layer, column, out);
        else
            apply_columns<kActivation, kPacks>(x, rows, layer, column, out);
    }
}

// Rows are short: a call of memcpy would take longer than the copy.
inline void copy(const float* from, int count, float* to) {
    int i = 0;
    for (; i + kFloats <= count; i += kFloats) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
}

// Row r of a block from `columns` numbers, zero up to the padding; and back.
inline void copy_to_block(const float* from, int columns, int r, float* block) {
    for (int first = 0; first < columns; first += kPadding) {
        float* to = block + first / kPadding * kPanel + r * kPadding;
        const int count = columns - first < kPadding ? columns - first : kPadding;
        if (count < kPadding)
            for (int i = 0; i < kPadding; i += kFloats) store(to + i, broadcast(0.0f));
        copy(from + first, count, to);
    }
}

inline void copy_from_block(const float* block, int columns, int r, float* to) {
    for (int first = 0; first < columns; first += kPadding)
        copy(block + first / kPadding * kPanel + r * kPadding, columns - first < kPadding ? columns - first : kPadding,
             to + first);
}

// Zeros in the rows from `rows` to the end of the last tile.
inline void clear_rest(int columns, int rows, float* block) {
    for (int first = 0; first < columns; first += kPadding, block += kPanel)
        for (int i = rows * kPadding; i < whole_tiles(rows) * kPadding; i += kFloats) store(block + i, broadcast(0.0f));
}

// A block of rows through one layer; out is another block, all of whose columns are written up to the padding.
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

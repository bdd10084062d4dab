// Small networks applied to columns: a pack contains the same number of several rows.
//
// This is for layers of few outputs, which would leave most of a pack empty in blocks.h. Columns have kBlock floats
// each and are contiguous.
#pragma once

#include "activation.h"
#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// a0 b0 a1 b1 ... from the lower or the upper halves of two packs.
#if defined(__clang__)
#define CARANSAC_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#elif defined(__GNUC__)
#define CARANSAC_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Ints{__VA_ARGS__})
#endif
#if !defined(CARANSAC_SHUFFLE)
inline Floats zip_lower(const Floats& a, const Floats&) { return a; }
inline Floats zip_upper(const Floats&, const Floats& b) { return b; }
#elif defined(__AVX512F__)
inline Floats zip_lower(const Floats& a, const Floats& b) {
    return CARANSAC_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Floats zip_upper(const Floats& a, const Floats& b) {
    return CARANSAC_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#elif defined(__AVX__)
inline Floats zip_lower(const Floats& a, const Floats& b) { return CARANSAC_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Floats zip_upper(const Floats& a, const Floats& b) { return CARANSAC_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#else
inline Floats zip_lower(const Floats& a, const Floats& b) { return CARANSAC_SHUFFLE(a, b, 0, 4, 1, 5); }
inline Floats zip_upper(const Floats& a, const Floats& b) { return CARANSAC_SHUFFLE(a, b, 2, 6, 3, 7); }
#endif
#undef CARANSAC_SHUFFLE

// Transposes a square of kFloats x kFloats numbers. Zipping the first half of the rows with the second half rotates the
// bits of a number's position (row bits above column bits) by one. Rotating them by half of their number exchanges rows
// and columns.
inline void transpose(const float* from, int from_stride, float* to, int to_stride) {
    Floats rows[kFloats], zipped[kFloats];
    for (int i = 0; i < kFloats; ++i) rows[i] = load(from + i * from_stride);
    for (int span = 1; span < kFloats; span *= 2) {
        for (int i = 0; i < kFloats / 2; ++i) {
            zipped[2 * i] = zip_lower(rows[i], rows[i + kFloats / 2]);
            zipped[2 * i + 1] = zip_upper(rows[i], rows[i + kFloats / 2]);
        }
        for (int i = 0; i < kFloats; ++i) rows[i] = zipped[i];
    }
    for (int i = 0; i < kFloats; ++i) store(to + i * to_stride, rows[i]);
}

// Transposes the rows of a block, rounded up to whole packs, to columns including the padding.
inline void to_columns(const float* block, int columns, int rows, float* out) {
    for (int column = 0; column < columns; column += kFloats)
        for (int r = 0; r < rows; r += kFloats)
            transpose(block + column / kPadding * kPanel + column % kPadding + r * kPadding, kPadding,
                      out + column * kBlock + r, kBlock);
}

// Computes kOutputs outputs, starting at `output`, of kGroup rows. The sums stay in registers.
constexpr int kPacksOfRows = 3;
constexpr int kGroup = kPacksOfRows * kFloats;
static_assert(kBlock % kGroup == 0);

template <int kOutputs>
inline void column_tile(const float* x, const Layer& layer, int output, float* out) {
    const float* weight = layer.weight + output / kPadding * kPadding * layer.inputs + output % kPadding;
    Floats sums[kOutputs][kPacksOfRows];
    for (int j = 0; j < kOutputs; ++j)
        for (int p = 0; p < kPacksOfRows; ++p) sums[j][p] = broadcast(layer.bias[output + j]);
    for (int i = 0; i < layer.inputs; ++i, weight += kPadding) {
        Floats column[kPacksOfRows];
        for (int p = 0; p < kPacksOfRows; ++p) column[p] = load(x + i * kBlock + p * kFloats);
        for (int j = 0; j < kOutputs; ++j) {
            const Floats w = broadcast(weight[j]);
            for (int p = 0; p < kPacksOfRows; ++p) sums[j][p] += w * column[p];
        }
    }
    for (int j = 0; j < kOutputs; ++j)
        for (int p = 0; p < kPacksOfRows; ++p) {
            const int at = (output + j) * kBlock + p * kFloats;
            const Floats value = activation(layer.activation, sums[j][p]);
            store(out + at, layer.residual ? value + load(x + at) : value);
        }
}

inline void apply_to_columns(const float* x, int rows, const Layer& layer, float* out) {
    for (int r = 0; r < rows; r += kGroup) {
        int output = 0;
        for (; output + 4 <= layer.outputs; output += 4) column_tile<4>(x + r, layer, output, out + r);
        for (; output < layer.outputs; ++output) column_tile<1>(x + r, layer, output, out + r);
    }
}

// Applies all layers to columns; the result is in one of the two halves of `hidden`, hidden_size(network) floats.
inline const float* apply_to_columns(const float* x, int rows, const Layers& network, float* hidden) {
    float* const halves[2] = {hidden, hidden + hidden_size(network) / 2};
    for (int l = 0; l < network.count; ++l) {
        apply_to_columns(x, rows, network.layers[l], halves[l % 2]);
        x = halves[l % 2];
    }
    return x;
}

}  // namespace caransac::CARANSAC_ISA

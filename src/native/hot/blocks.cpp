#include "blocks.h"

#include "activation.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Whether activations are applied while the sums are in registers. With short packs there are too few registers, and
// activations take a separate pass.
constexpr bool kAtOnce = kFloats > 4;

// Activation and skip connection of a layer, for a pack of its outputs and the inputs at the same place.
template <Activation kActivation>
inline Floats finished(const Floats& sums, const float* x, const Layer& layer) {
    const Floats value = activation<kActivation>(sums);
    return layer.residual ? value + load(x) : value;
}

// Outputs of a layer for kRows rows and kPacks packs of columns. The sums stay in registers.
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
            store(out + at, kAtOnce ? finished<kActivation>(sums[r][p], x + at, layer) : sums[r][p]);
        }
}

template <Activation kActivation, int kPacks>
inline void apply_panel(const float* x, int rows, const Layer& layer, int column, float* out) {
    constexpr int kRows = kTile / kPacks;  // enough sums to hide their latency, few enough for the registers
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
    if (kAtOnce || (kActivation == Activation::kNone && !layer.residual)) return;
    for (int column = 0; column < layer.outputs; column += kPadding, x += kPanel, out += kPanel)
        for (int i = 0; i < rows * kPadding; i += kFloats)
            store(out + i, finished<kActivation>(load(out + i), x + i, layer));
}

}  // namespace

void apply(const float* x, int rows, const Layer& layer, float* out) {
    rows = whole_tiles(rows);
    switch (layer.activation) {
        case Activation::kNone:
            return apply<Activation::kNone>(x, rows, layer, out);
        case Activation::kLeakyRelu:
            return apply<Activation::kLeakyRelu>(x, rows, layer, out);
        case Activation::kTanh:
            return apply<Activation::kTanh>(x, rows, layer, out);
    }
}

}  // namespace caransac::CARANSAC_ISA

#include "mlp.h"

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// tanh x = 1 - 2 / (exp(2 x) + 1), to about 1e-7.
inline Floats hyperbolic_tangent(const Floats& x) {
    constexpr float kSaturated = 9;  // tanh is one to single precision from here on
    const Floats clamped = x < -kSaturated ? broadcast(-kSaturated) : (x > kSaturated ? broadcast(kSaturated) : x);
    return 1.0f - 2.0f / (exponential(2.0f * clamped) + 1.0f);
}

template <Activation kActivation>
inline Floats activate(const Floats& x) {
    if constexpr (kActivation == Activation::kTanh) return hyperbolic_tangent(x);
    if constexpr (kActivation == Activation::kLeakyRelu) return x > 0.0f ? x : kLeak * x;
    return x;
}

// kRows rows at once, kPacks packs of outputs: their accumulators stay in registers.
template <Activation kActivation, int kRows, int kPacks>
inline void tile(const float* x, const Layer& layer, int first, float* out) {
    Floats sums[kRows][kPacks];
    for (int p = 0; p < kPacks; ++p)
        for (int r = 0; r < kRows; ++r) sums[r][p] = load(layer.bias + first + p * kFloats);
    for (int i = 0; i < layer.inputs; ++i)
        for (int p = 0; p < kPacks; ++p) {
            const Floats w = load(layer.weight + i * kMaxLayerWidth + first + p * kFloats);
            for (int r = 0; r < kRows; ++r) sums[r][p] += x[r * layer.inputs + i] * w;
        }
    for (int r = 0; r < kRows; ++r)
        for (int p = 0; p < kPacks; ++p) {
            const int begin = first + p * kFloats;
            const float* skip = x + r * layer.inputs + begin;
            float* to = out + r * layer.outputs + begin;
            const Floats value = activate<kActivation>(sums[r][p]);
            if (begin + kFloats <= layer.outputs) {
                store(to, layer.residual ? value + load(skip) : value);
            } else {
                for (int l = 0; begin + l < layer.outputs; ++l)
                    to[l] = lane(value, l) + (layer.residual ? skip[l] : 0.0f);
            }
        }
}

template <Activation kActivation, int kPacks>
inline void column_block(const float* x, int rows, const Layer& layer, int first, float* out) {
    constexpr int kRows = 4;
    int r = 0;
    for (; r + kRows <= rows; r += kRows)
        tile<kActivation, kRows, kPacks>(x + r * layer.inputs, layer, first, out + r * layer.outputs);
    for (; r < rows; ++r) tile<kActivation, 1, kPacks>(x + r * layer.inputs, layer, first, out + r * layer.outputs);
}

template <Activation kActivation>
void apply(const float* x, int rows, const Layer& layer, float* out) {
    for (int first = 0; first < layer.outputs; first += 2 * kFloats) {
        if (layer.outputs - first > kFloats)
            column_block<kActivation, 2>(x, rows, layer, first, out);
        else
            column_block<kActivation, 1>(x, rows, layer, first, out);
    }
}

void apply(const float* x, int rows, const Layer& layer, float* out) {
    switch (layer.activation) {
        case Activation::kNone:
            return apply<Activation::kNone>(x, rows, layer, out);
        case Activation::kLeakyRelu:
            return apply<Activation::kLeakyRelu>(x, rows, layer, out);
        case Activation::kTanh:
            return apply<Activation::kTanh>(x, rows, layer, out);
    }
}

}  // namespace

void mlp(const float* x, int rows, const Layer* layers, int num_layers, float* out) {
    constexpr int kBlock = 32;
    float buffers[2][kBlock * kMaxLayerWidth];
    const int inputs = layers[0].inputs, outputs = layers[num_layers - 1].outputs;
    for (int first = 0; first < rows; first += kBlock) {
        const int count = first + kBlock < rows ? kBlock : rows - first;
        const float* from = x + static_cast<long long>(first) * inputs;
        for (int l = 0; l < num_layers; ++l) {
            float* to = l + 1 < num_layers ? buffers[l % 2] : out + static_cast<long long>(first) * outputs;
            apply(from, count, layers[l], to);
            from = to;
        }
    }
}

}  // namespace caransac::CARANSAC_ISA

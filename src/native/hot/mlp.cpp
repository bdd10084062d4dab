#include "mlp.h"

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Rows of activations are whole packs, so that nothing below has a remainder in this direction.
constexpr int row_stride(int width) { return (width + kFloats - 1) / kFloats * kFloats; }

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

// Rows are short: a call of memcpy would take longer than the copy.
inline void copy(const float* from, int count, float* to) {
    int i = 0;
    for (; i + kFloats <= count; i += kFloats) store(to + i, load(from + i));
    for (; i < count; ++i) to[i] = from[i];
}

// A block of rows of the inputs, side by side.
void gather(const Input* inputs, int num_inputs, int first, int rows, long long stride, float* out) {
    for (int k = 0; k < num_inputs; ++k) {
        const Input& input = inputs[k];
        for (int r = 0; r < rows; ++r) {
            const float* from = input.data + (first + r) * input.row_stride;
            if (input.column_stride == 1)
                copy(from, input.columns, out + r * stride);
            else
                for (int c = 0; c < input.columns; ++c) out[r * stride + c] = from[c * input.column_stride];
        }
        out += input.columns;
    }
}

// out = x weight + bias for kRows rows and kPacks packs of outputs, whose sums stay in registers.
template <int kRows, int kPacks>
inline void tile(const float* x, long long stride, const Layer& layer, int first, float* out) {
    const float* weight[kPacks];
    Floats sums[kRows][kPacks];
    for (int p = 0; p < kPacks; ++p) {
        const int column = first + p * kFloats;
        weight[p] = layer.weight + column / kPadding * kPadding * layer.inputs + column % kPadding;
        for (int r = 0; r < kRows; ++r) sums[r][p] = load(layer.bias + column);
    }
    for (int i = 0; i < layer.inputs; ++i) {
        Floats w[kPacks];
        for (int p = 0; p < kPacks; ++p) w[p] = load(weight[p] + i * kPadding);
        for (int r = 0; r < kRows; ++r)
            for (int p = 0; p < kPacks; ++p) sums[r][p] += x[r * stride + i] * w[p];
    }
    for (int r = 0; r < kRows; ++r)
        for (int p = 0; p < kPacks; ++p) store(out + r * row_stride(layer.outputs) + first + p * kFloats, sums[r][p]);
}

template <int kPacks>
void column_block(const float* x, long long stride, int rows, const Layer& layer, int first, float* out) {
    constexpr int kRows = 12 / kPacks;  // enough independent sums to hide their latency, few enough for the registers
    const int to = row_stride(layer.outputs);
    int r = 0;
    for (; r + kRows <= rows; r += kRows) tile<kRows, kPacks>(x + r * stride, stride, layer, first, out + r * to);
    for (; r < rows; ++r) tile<1, kPacks>(x + r * stride, stride, layer, first, out + r * to);
}

// In a pass of its own, because together with the sums it needs more registers than there are.
template <Activation kActivation>
void activate(const float* x, const Layer& layer, int rows, float* out) {
    for (int i = 0; i < rows * row_stride(layer.outputs); i += kFloats) {
        const Floats value = activation<kActivation>(load(out + i));
        store(out + i, layer.residual ? value + load(x + i) : value);
    }
}

void apply(const float* x, long long stride, int rows, const Layer& layer, float* out) {
    for (int first = 0; first < layer.outputs; first += 2 * kFloats) {
        if (layer.outputs - first > kFloats)
            column_block<2>(x, stride, rows, layer, first, out);
        else
            column_block<1>(x, stride, rows, layer, first, out);
    }
    switch (layer.activation) {
        case Activation::kNone:
            if (layer.residual) activate<Activation::kNone>(x, layer, rows, out);
            return;
        case Activation::kLeakyRelu:
            return activate<Activation::kLeakyRelu>(x, layer, rows, out);
        case Activation::kTanh:
            return activate<Activation::kTanh>(x, layer, rows, out);
    }
}

}  // namespace

void mlp(const Input* inputs, int num_inputs, int rows, const Layer* layers, int num_layers, float* scratch,
         float* out) {
    float* gathered = scratch;
    float* buffers[2] = {scratch + kMlpBlock * padded(layers[0].inputs), nullptr};
    buffers[1] = buffers[0] + (mlp_scratch(layers, num_layers) - kMlpBlock * padded(layers[0].inputs)) / 2;
    const int outputs = layers[num_layers - 1].outputs;
    // What is in place already, or can be written in place, is not copied.
    const bool direct_input = num_inputs == 1 && inputs[0].column_stride == 1 && !layers[0].residual;
    const bool direct_output = row_stride(outputs) == outputs;
    for (int first = 0; first < rows; first += kMlpBlock) {
        const int count = first + kMlpBlock < rows ? kMlpBlock : rows - first;
        float* result = out + static_cast<long long>(first) * outputs;
        const float* from = gathered;
        long long stride = row_stride(layers[0].inputs);
        if (direct_input) {
            stride = inputs[0].row_stride;
            from = inputs[0].data + first * inputs[0].row_stride;
        } else {
            gather(inputs, num_inputs, first, count, stride, gathered);
        }
        for (int l = 0; l < num_layers; ++l) {
            float* to = direct_output && l + 1 == num_layers ? result : buffers[l % 2];
            apply(from, stride, count, layers[l], to);
            from = to;
            stride = row_stride(layers[l].outputs);
        }
        if (!direct_output)
            for (int r = 0; r < count; ++r) copy(from + r * stride, outputs, result + r * outputs);
    }
}

}  // namespace caransac::CARANSAC_ISA

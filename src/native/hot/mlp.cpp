#include "mlp.h"

#include "blocks.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Copies a block of rows of the inputs, side by side.
void gather(const Input* inputs, int num_inputs, int first, int rows, float* block) {
    int column = 0;
    for (int k = 0; k < num_inputs; ++k) {
        const Input& input = inputs[k];
        for (int c = 0; c < input.columns; ++c, ++column) {
            const float* from = input.data + first * input.row_stride + c * input.column_stride;
            float* to = block + column / kPadding * kPanel + column % kPadding;
            for (int r = 0; r < rows; ++r) to[r * kPadding] = from[r * input.row_stride];
        }
    }
}

}  // namespace

void mlp(const Input* inputs, int num_inputs, int rows, const Layers& network, float* scratch, float* out) {
    const int columns = inputs_of(network), outputs = outputs_of(network);
    float* const block = scratch;
    float* const hidden = block + block_size(columns);
    float* const results = hidden + hidden_size(network);
    const bool whole_rows = num_inputs == 1 && inputs[0].column_stride == 1;
    for (int first = 0; first < rows; first += kBlock) {
        const int count = first + kBlock < rows ? kBlock : rows - first;
        if (whole_rows)
            for_each_piece(count, columns, [&](int r, int column, int length) {
                copy(inputs[0].data + (first + r) * inputs[0].row_stride + column, length, at(block, r, column));
            });
        else
            gather(inputs, num_inputs, first, count, block);
        apply(block, count, network, hidden, results);
        float* const to = out + static_cast<long long>(first) * outputs;
        for_each_piece(count, outputs, [&](int r, int column, int length) {
            copy(at(results, r, column), length, to + r * outputs + column);
        });
    }
}

}  // namespace caransac::CARANSAC_ISA

#include "packed_layers.h"

#include <algorithm>
#include <cstddef>

namespace caransac {
namespace {

// Panels of kPadding columns for the kernels, zero beyond the last column.
AlignedFloats panels(const float* matrix, size_t rows, size_t columns) {
    AlignedFloats result(rows * padded(static_cast<int>(columns)));
    for (size_t i = 0; i < rows; ++i)
        for (size_t first = 0; first < columns; first += kPadding)
            std::copy_n(matrix + i * columns + first, std::min<size_t>(kPadding, columns - first),
                        result.data() + first * rows + i * kPadding);
    return result;
}

}  // namespace

PackedLayers::PackedLayers(const std::vector<PlainLayer>& layers) {
    for (const PlainLayer& layer : layers) add(layer);
}

void PackedLayers::add(const PlainLayer& layer) {
    memory_.push_back(panels(layer.weight, layer.inputs, layer.outputs));
    const float* weight = memory_.back().data();
    memory_.push_back(panels(layer.bias, 1, layer.outputs));
    layers_.push_back({weight, memory_.back().data(), layer.inputs, layer.outputs, layer.activation, layer.residual});
}

}  // namespace caransac

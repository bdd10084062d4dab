#include "photograph.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

// Reads pixels [left, left + width) of a row, clamped to the image, and adds them to the output.
template <class Number>
void read_row(const Photograph& image, int y, int left, int width, float* out) {
    const std::uint8_t* row = image.data + std::clamp(y, 0, image.height - 1) * image.row;
    if (image.channels == 1 && image.column == sizeof(Number) && left >= 0 && left + width <= image.width) {
        const Number* from = reinterpret_cast<const Number*>(row) + left;
        for (int i = 0; i < width; ++i) out[i] = static_cast<float>(from[i]);
        return;
    }
    const auto at = [&](int x, int channel) {
        const std::uint8_t* from = row + std::clamp(x, 0, image.width - 1) * image.column + channel * image.channel;
        return static_cast<float>(*reinterpret_cast<const Number*>(from));
    };
    if (image.channels == 3) {
        for (int i = 0; i < width; ++i) out[i] = 0.25f * (at(left + i, 0) + at(left + i, 2)) + 0.5f * at(left + i, 1);
    } else {
        for (int i = 0; i < width; ++i) out[i] = at(left + i, 0);
    }
}

void read_row(const Photograph& image, int y, int left, int width, float* out) {
    switch (image.kind) {
        case GreyKind::kUint8:
            return read_row<std::uint8_t>(image, y, left, width, out);
        case GreyKind::kUint16:
            return read_row<std::uint16_t>(image, y, left, width, out);
        case GreyKind::kFloat:
            return read_row<float>(image, y, left, width, out);
        case GreyKind::kDouble:
            return read_row<double>(image, y, left, width, out);
    }
}

}  // namespace

const Window& WindowBuffer::read(const Photograph& image, int level, double x, double y, int radius) {
    const int step = 1 << level, side = 2 * radius + 1, padded = side + 2;
    const int left = static_cast<int>(std::lround(x)) - radius, top = static_cast<int>(std::lround(y)) - radius;
    grey_.resize(static_cast<size_t>(padded) * padded);
    rows_.resize(static_cast<size_t>(padded) * step);
    for (int r = 0; r < padded; ++r) {
        float* out = grey_.data() + static_cast<size_t>(r) * padded;
        if (level == 0) {
            read_row(image, top - 1 + r, left - 1, padded, out);
            continue;
        }
        std::fill(out, out + padded, 0.0f);
        for (int k = 0; k < step; ++k) {
            read_row(image, (top - 1 + r) * step + k, (left - 1) * step, padded * step, rows_.data());
            for (int c = 0; c < padded; ++c)
                for (int j = 0; j < step; ++j) out[c] += rows_[static_cast<size_t>(c) * step + j];
        }
        for (int c = 0; c < padded; ++c) out[c] /= static_cast<float>(step * step);
    }
    // Blur, first along columns, then along rows, in place.
    for (int r = 0; r < side; ++r) {
        float* row = grey_.data() + static_cast<size_t>(r) * padded;
        for (int c = 0; c < padded; ++c)
            row[c] = (row[c] + row[c + 2 * padded]) * (1 / 6.0f) + row[c + padded] * (4 / 6.0f);
        for (int c = 0; c < side; ++c) row[c] = (row[c] + row[c + 2]) * (1 / 6.0f) + row[c + 1] * (4 / 6.0f);
    }
    window_ = {grey_.data(), side, side, padded, {static_cast<double>(left), static_cast<double>(top)}};
    return window_;
}

}  // namespace caransac

// Photographs as users have them: any size, strides, number of channels and kind of number.
#pragma once

#include <cstdint>
#include <vector>

#include "hot/patch.h"

namespace caransac {

enum class GreyKind { kUint8, kUint16, kFloat, kDouble };

// Pixels in the caller's memory. Strides are in bytes. Three channels count as grey with weights 1/4, 1/2, 1/4, which
// do not depend on the order of red and blue.
struct Photograph {
    const std::uint8_t* data;
    GreyKind kind;
    int width, height, channels;
    std::ptrdiff_t row, column, channel;
};

// Memory of a window.
class WindowBuffer {
  public:
    // Reads the square of pixels around (x, y) at a pyramid level: a pixel of level l is the mean of 2^l x 2^l pixels.
    // Coordinates and radius are those of the level. Beyond the border, the pixels of the border are repeated. The grey
    // levels are blurred by the cubic B-spline, whose deviation is 0.58 pixels: interpolation needs smooth images.
    const Window& read(const Photograph& photograph, int level, double x, double y, int radius);

  private:
    std::vector<float> grey_, rows_;
    Window window_{};
};

}  // namespace caransac

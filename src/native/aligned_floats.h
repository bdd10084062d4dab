// Zero-initialised memory for the kernels, aligned so that packs do not straddle cache lines.
#pragma once

#include <cstddef>
#include <vector>

#include "hot/points.h"

namespace caransac {

class AlignedFloats {
  public:
    explicit AlignedFloats(size_t size) : lines_((size + kPadding - 1) / kPadding) {}
    float* data() { return lines_.data()->numbers; }
    const float* data() const { return lines_.data()->numbers; }

  private:
    struct alignas(kPadding * sizeof(float)) Line {
        float numbers[kPadding];
    };
    std::vector<Line> lines_;
};

}  // namespace caransac

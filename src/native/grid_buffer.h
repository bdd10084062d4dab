// Makes a grid, and owns its arrays.
#pragma once

#include <memory>

#include "hot/grid.h"

namespace caransac {

// Sorts (x, y) of one image, and carries along where the points are in the other image.
class GridBuffer {
  public:
    GridBuffer(const double* x, const double* y, const double* other_x, const double* other_y, int n);
    const Grid& view() const { return grid_; }

  private:
    std::unique_ptr<Match[]> matches_;
    std::unique_ptr<float[]> coordinates_;
    std::unique_ptr<int[]> point_, start_;
    Grid grid_;
};

}  // namespace caransac

// Makes a grid, and owns its arrays.
#pragma once

#include <vector>

#include "hot/grid.h"

namespace caransac {

// Sorts (x, y) of one image, and carries along where the points are in the other image.
class GridBuffer {
  public:
    GridBuffer(const double* x, const double* y, const double* other_x, const double* other_y, int n);
    GridBuffer(const GridBuffer&) = delete;  // the view points into it
    GridBuffer& operator=(const GridBuffer&) = delete;
    const Grid& view() const { return grid_; }

  private:
    std::vector<double> coordinates_;
    std::vector<int> point_, start_;
    Grid grid_;
};

}  // namespace caransac

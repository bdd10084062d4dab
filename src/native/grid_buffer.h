// Builds a grid and owns its arrays.
#pragma once

#include <memory>

#include "hot/grid.h"

namespace caransac {

// Sorts the points (x, y) of one image together with their matches in the other image. z and other_z are null except
// for 3D points.
class GridBuffer {
  public:
    GridBuffer(const double* x, const double* y, const double* other_x, const double* other_y, int n,
               const double* z = nullptr, const double* other_z = nullptr);
    const Grid& view() const { return grid_; }

  private:
    std::unique_ptr<Match[]> matches_;
    std::unique_ptr<float[]> coordinates_;
    std::unique_ptr<int[]> point_, start_;
    std::unique_ptr<double[]> z_, other_z_;
    Grid grid_;
};

}  // namespace caransac

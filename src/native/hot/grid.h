// Points sorted into the cells of a uniform grid.
#pragma once

namespace caransac {

// A correspondence, seen from one image: (x, y) there, (other_x, other_y) in the other.
struct Match {
    double x, y, other_x, other_y;
};

// Correspondences in the order of the cells of one image. Cell c = column + columns * row has the entries start[c] ..
// start[c + 1] - 1, so that neighbouring cells of a row are contiguous in memory. The cells of the border extend to
// infinity.
struct Grid {
    const Match* match;
    const float *x, *y;         // copies of the coordinates for searches; kGridPadding more can be read
    const int* point;           // index of each correspondence before sorting
    const int* start;           // columns * rows + 1 entries
    const double *z, *other_z;  // third coordinates here and in the other image, for 3D points
    int n, columns, rows;
    double left, top, columns_per_unit, rows_per_unit;
};

constexpr int kGridPadding = 16;

// The column of x or the row of y, from its distance to the grid's edge in cells. The function is static because it
// must not be shared by the instruction sets (see README.md).
template <class Real>
static inline int cell_index(Real cells_away, int cells) {
    const Real last = static_cast<Real>(cells - 1), before_end = cells_away < last ? cells_away : last;
    return static_cast<int>(before_end > 0 ? before_end : 0);
}

}  // namespace caransac

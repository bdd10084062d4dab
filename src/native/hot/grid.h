// Points sorted into the cells of a uniform grid.
#pragma once

namespace caransac {

// Correspondences in the order of the cells of one image: (x, y) in this image, (other_x, other_y) in the other. Those
// of cell c, and c = column + columns * row, are start[c] .. start[c + 1] - 1; neighbouring cells of a row are thus one
// stretch of memory. The cells of the border reach to infinity.
struct Grid {
    const double *x, *y, *other_x, *other_y;
    const int* point;  // index of each correspondence before sorting
    const int* start;  // columns * rows + 1 entries
    int n, columns, rows;
    double left, top, cell_size;
};

}  // namespace caransac

#include "grid_buffer.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

constexpr double kPerCell = 1.5;  // average number of points in a cell
// Height of a cell divided by its width: the fastest of several values in searches for eight neighbours.
constexpr double kAspect = 3;
constexpr double kExtent = 2;      // half the size of the grid divided by the spread; nearly all points are inside
constexpr double kFarthest = 1e9;  // coordinates saturate here, so that no squared distance overflows

// Range of most of the numbers.
struct Interval {
    double low = kExtent, high = -kExtent;
    void include(double value) {
        low = std::min(low, std::max(value, -kExtent));
        high = std::max(high, std::min(value, kExtent));
    }
    double length() const { return std::max(high - low, 0.01); }  // positive, because points may lie on a line
};

double saturated(double value) { return std::clamp(value, -kFarthest, kFarthest); }

}  // namespace

GridBuffer::GridBuffer(const double* x, const double* y, const double* other_x, const double* other_y, int n,
                       const double* z, const double* other_z)
    : matches_(new Match[n]), coordinates_(new float[2 * static_cast<size_t>(n + kGridPadding)]), point_(new int[n]) {
    Interval horizontal, vertical;
    for (int i = 0; i < n; ++i) {
        horizontal.include(x[i]);
        vertical.include(y[i]);
    }
    const double rows_per_unit =
        std::sqrt(std::max(n, 1) / (horizontal.length() * vertical.length() * kPerCell * kAspect));
    const double columns_per_unit = kAspect * rows_per_unit;
    const int columns = static_cast<int>(horizontal.length() * columns_per_unit) + 1;
    const int rows = static_cast<int>(vertical.length() * rows_per_unit) + 1;
    const size_t cells = static_cast<size_t>(columns) * rows;

    // The count of cell c is stored at c + 2, so that the prefix sum at c + 1 is the start of cell c. Filling the cell
    // advances it to the start of cell c + 1.
    start_.reset(new int[cells + 2]());
    const std::unique_ptr<int[]> cell(new int[n]);
    for (int i = 0; i < n; ++i) {
        cell[i] = cell_index((x[i] - horizontal.low) * columns_per_unit, columns) +
                  columns * cell_index((y[i] - vertical.low) * rows_per_unit, rows);
        ++start_[cell[i] + 2];
    }
    for (size_t c = 2; c < cells + 2; ++c) start_[c] += start_[c - 1];
    float *sorted_x = coordinates_.get(), *sorted_y = sorted_x + n + kGridPadding;
    for (int i = 0; i < n; ++i) {
        const int at = start_[cell[i] + 1]++;
        const Match match = {saturated(x[i]), saturated(y[i]), saturated(other_x[i]), saturated(other_y[i])};
        matches_[at] = match;
        sorted_x[at] = static_cast<float>(match.x);
        sorted_y[at] = static_cast<float>(match.y);
        point_[at] = i;
    }
    const auto sorted = [&](const double* from, std::unique_ptr<double[]>& to) {
        if (from == nullptr) return;
        to.reset(new double[n]);
        for (int at = 0; at < n; ++at) to[at] = saturated(from[point_[at]]);
    };
    sorted(z, z_);
    sorted(other_z, other_z_);
    for (int i = n; i < n + kGridPadding; ++i) sorted_x[i] = sorted_y[i] = 0;
    grid_ = {matches_.get(), sorted_x, sorted_y,       point_.get(), start_.get(),     z_.get(),     other_z_.get(), n,
             columns,        rows,     horizontal.low, vertical.low, columns_per_unit, rows_per_unit};
}

}  // namespace caransac

#include "grid_buffer.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

constexpr double kPerCell = 4;     // points in a cell on average: the fastest of 2, 3 and 4 when looking for eight
constexpr double kExtent = 2;      // in spreads: nearly all points lie within this of the centre
constexpr double kFarthest = 1e9;  // coordinates saturate here, so that no squared distance overflows

// Where most of the numbers are.
struct Interval {
    double low = kExtent, high = -kExtent;
    Interval(const double* values, int n) {
        for (int i = 0; i < n; ++i) {
            low = std::min(low, std::max(values[i], -kExtent));
            high = std::max(high, std::min(values[i], kExtent));
        }
    }
    double length() const { return std::max(high - low, 0.01); }  // not zero: points may lie on a line
};

}  // namespace

GridBuffer::GridBuffer(const double* x, const double* y, const double* other_x, const double* other_y, int n)
    : coordinates_(4 * static_cast<size_t>(n)), point_(n) {
    const Interval horizontal(x, n), vertical(y, n);
    const double cell_size = std::sqrt(horizontal.length() * vertical.length() * kPerCell / std::max(n, 1));
    const int columns = static_cast<int>(horizontal.length() / cell_size) + 1;
    const int rows = static_cast<int>(vertical.length() / cell_size) + 1;

    const auto index = [&](double offset, int count) {
        return static_cast<int>(std::clamp(offset / cell_size, 0.0, count - 1.0));
    };
    std::vector<int> cell(n);
    start_.assign(static_cast<size_t>(columns) * rows + 1, 0);
    for (int i = 0; i < n; ++i) {
        cell[i] = index(x[i] - horizontal.low, columns) + columns * index(y[i] - vertical.low, rows);
        ++start_[cell[i] + 1];
    }
    for (size_t c = 1; c < start_.size(); ++c) start_[c] += start_[c - 1];

    double* sorted[4];
    for (int k = 0; k < 4; ++k) sorted[k] = coordinates_.data() + static_cast<size_t>(k) * n;
    std::vector<int> next(start_.begin(), start_.end() - 1);
    for (int i = 0; i < n; ++i) {
        const int at = next[cell[i]]++;
        point_[at] = i;
        const double values[4] = {x[i], y[i], other_x[i], other_y[i]};
        for (int k = 0; k < 4; ++k) sorted[k][at] = std::clamp(values[k], -kFarthest, kFarthest);
    }
    grid_ = {sorted[0], sorted[1], sorted[2], sorted[3],      point_.data(), start_.data(),
             n,         columns,   rows,      horizontal.low, vertical.low,  cell_size};
}

}  // namespace caransac

#include "copies.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace caransac {
namespace {

// Where the chain of a cell of image 1 begins; cells that meet here share a chain, which costs little.
size_t slot_of(double column, double row, size_t mask) {
    const auto x = static_cast<std::uint64_t>(static_cast<std::int64_t>(column));
    const auto y = static_cast<std::uint64_t>(static_cast<std::int64_t>(row));
    const std::uint64_t mixed = (x * 0x9E3779B97F4A7C15ull) ^ (y * 0xC2B2AE3D27D4EB4Full);
    return static_cast<size_t>(mixed ^ (mixed >> 29)) & mask;
}

}  // namespace

std::vector<int> originals(const Columns<double>& points, const std::vector<int>& order, double reach) {
    constexpr double kFarthest = 1e15;  // in cells: beyond, they are not whole numbers
    const double cell = 2 * reach;
    size_t slots = 64;
    while (slots < 2 * order.size()) slots *= 2;
    std::vector<int> first(slots, -1), next(points.n, -1), original(points.n);
    const auto near = [&](int a, int b) {
        return std::abs(points.u1[a] - points.u1[b]) <= reach && std::abs(points.v1[a] - points.v1[b]) <= reach &&
               std::abs(points.u2[a] - points.u2[b]) <= reach && std::abs(points.v2[a] - points.v2[b]) <= reach;
    };
    const auto find = [&](int i, double column, double row) {
        for (int k = first[slot_of(column, row, slots - 1)]; k >= 0; k = next[k])
            if (near(i, k)) return k;
        return -1;
    };
    for (const int i : order) {
        original[i] = i;
        const double x = points.u1[i] / cell, y = points.v1[i] / cell;
        if (!(std::abs(x) < kFarthest && std::abs(y) < kFarthest)) continue;
        const double column = std::floor(x), row = std::floor(y);
        // What is near lies in this cell or in the next ones on the nearer sides.
        const double beside = x - column < 0.5 ? column - 1 : column + 1, below = y - row < 0.5 ? row - 1 : row + 1;
        int found = find(i, column, row);
        if (found < 0) found = find(i, beside, row);
        if (found < 0) found = find(i, column, below);
        if (found < 0) found = find(i, beside, below);
        if (found >= 0) {
            original[i] = found;
            continue;
        }
        int& head = first[slot_of(column, row, slots - 1)];
        next[i] = head;
        head = i;
    }
    return original;
}

}  // namespace caransac

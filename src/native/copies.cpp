#include "copies.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace caransac {
namespace {

// Where the chain of a cell of image 1 begins; cells that meet here share a chain, which costs little.
size_t slot_of(std::int64_t column, std::int64_t row, size_t mask) {
    const auto x = static_cast<std::uint64_t>(column), y = static_cast<std::uint64_t>(row);
    const std::uint64_t mixed = (x * 0x9E3779B97F4A7C15ull) ^ (y * 0xC2B2AE3D27D4EB4Full);
    return static_cast<size_t>(mixed ^ (mixed >> 29)) & mask;
}

// The cell of a coordinate that is given in cells, and the one next to it on the nearer side.
struct Cells {
    std::int64_t own, beside;
    explicit Cells(double x) : own(static_cast<std::int64_t>(x)) {
        own -= static_cast<double>(own) > x;  // the conversion rounds towards zero
        beside = x - static_cast<double>(own) < 0.5 ? own - 1 : own + 1;
    }
};

}  // namespace

std::vector<int> originals(const Columns<double>& points, const std::vector<int>& order, double reach) {
    constexpr double kFarthest = 1e15;  // in cells: beyond, they are not whole numbers
    const double cell = 2 * reach;
    size_t slots = 64;  // so many that most are empty
    while (slots < 8 * order.size()) slots *= 2;
    std::vector<int> first(slots, -1), next(points.n, -1), original(points.n);
    const auto near = [&](int a, int b) {
        return std::abs(points.u1[a] - points.u1[b]) <= reach && std::abs(points.v1[a] - points.v1[b]) <= reach &&
               std::abs(points.u2[a] - points.u2[b]) <= reach && std::abs(points.v2[a] - points.v2[b]) <= reach;
    };
    for (const int i : order) {
        original[i] = i;
        const double x = points.u1[i] / cell, y = points.v1[i] / cell;
        if (!(std::abs(x) < kFarthest && std::abs(y) < kFarthest)) continue;
        const Cells columns(x), rows(y);  // what is near lies in these
        int* const heads[4] = {&first[slot_of(columns.own, rows.own, slots - 1)],
                               &first[slot_of(columns.beside, rows.own, slots - 1)],
                               &first[slot_of(columns.own, rows.beside, slots - 1)],
                               &first[slot_of(columns.beside, rows.beside, slots - 1)]};
        int found = -1;
        if ((*heads[0] & *heads[1] & *heads[2] & *heads[3]) >= 0)  // not all are -1
            for (const int* head : heads)
                for (int k = *head; k >= 0 && found < 0; k = next[k])
                    if (near(i, k)) found = k;
        if (found >= 0) {
            original[i] = found;
            continue;
        }
        next[i] = *heads[0];
        *heads[0] = i;
    }
    return original;
}

}  // namespace caransac

#include "neighbours.h"

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

constexpr float kClose = 0.25f;     // neighbours nearer than this in the other image stay close
constexpr float kFarthest = 5;      // distances saturate here, relative changes at ten times it
constexpr float kSmallest = 0.01f;  // added before logarithms of distances
constexpr float kSmallestChange = 0.05f, kSmallestLength = 0.02f;

constexpr int kMostCandidates = 1024;  // crowds are cut short here, an approximation that bounds the work on them
constexpr double kInfinity = 1e30;     // more than any squared distance in a grid

// A squared distance and the point it leads to in one number: the index takes the last bits of the mantissa. The
// nearest points are then found by minima and maxima alone, whatever the lanes hold.
constexpr long long kIndexBits = (1LL << 25) - 1;  // more than the points of any array (count_of in bindings.cpp)

inline Doubles with_index(const Doubles& distance_sq, int index) {
    Longs bits;
    std::memcpy(&bits, &distance_sq, sizeof(bits));
    bits = (bits & ~kIndexBits) | static_cast<long long>(index);
    Doubles key;
    std::memcpy(&key, &bits, sizeof(key));
    return key;
}

inline int index_of(double key) {
    long long bits;
    std::memcpy(&bits, &key, sizeof(bits));
    return static_cast<int>(bits & kIndexBits);
}

// Neighbours of a few points close to each other, a lane each, and the part of the grid they were found in.
class Search {
  public:
    // Points first .. last - 1, at most as many as there are lanes, of the cells first_cell .. last_cell of one row.
    Search(const Grid& grid, int first, int last, int first_cell, int last_cell, double min_distance)
        : grid_(grid),
          min_distance_sq_(min_distance * min_distance),
          left_(first_cell % grid.columns),
          right_(last_cell % grid.columns),
          top_(first_cell / grid.columns),
          bottom_(top_) {
        for (int l = 0; l < kDoubles; ++l) {
            const int i = first + l < last ? first + l : last - 1;
            set_lane(x_, l, grid.x[i]);
            set_lane(y_, l, grid.y[i]);
        }
        for (Doubles& key : nearest_) key = broadcast(kInfinity);
        visit(top_, left_, right_);
        while (!complete()) grow();
    }

    // The k-th nearest point to that of lane l; -1 if there is none.
    int neighbour(int k, int l) const {
        const double key = lane(nearest_[k], l);
        return key < 0.5 * kInfinity ? index_of(key) : -1;
    }

  private:
    // Cells left .. right of a row.
    void visit(int row, int left, int right) {
        const int* start = grid_.start + row * grid_.columns;
        int end = start[right + 1];
        if (end - start[left] > kMostCandidates - seen_) end = start[left] + kMostCandidates - seen_;
        seen_ += end - start[left];
        Doubles nearest[kNeighbours];
        for (int k = 0; k < kNeighbours; ++k) nearest[k] = nearest_[k];
        for (int m = start[left]; m < end; ++m) {
            const Doubles dx = grid_.x[m] - x_, dy = grid_.y[m] - y_, distance_sq = dx * dx + dy * dy;
            Doubles key = with_index(distance_sq > min_distance_sq_ ? distance_sq : broadcast(kInfinity), m);
            for (Doubles& kept : nearest) {
                const Doubles nearer = kept < key ? kept : key;
                key = kept < key ? key : kept;
                kept = nearer;
            }
        }
        for (int k = 0; k < kNeighbours; ++k) nearest_[k] = nearest[k];
    }

    // One more ring of cells.
    void grow() {
        const int left = left_ > 0 ? left_ - 1 : left_, right = right_ + 1 < grid_.columns ? right_ + 1 : right_;
        const int top = top_, bottom = bottom_;
        for (int row = top; row <= bottom; ++row) {
            if (left < left_) visit(row, left, left);
            if (right > right_) visit(row, right, right);
        }
        if (top > 0) visit(top_ = top - 1, left, right);
        if (bottom + 1 < grid_.rows) visit(bottom_ = bottom + 1, left, right);
        left_ = left;
        right_ = right;
    }

    // No point outside of the visited cells is nearer than the neighbours, or enough has been seen.
    bool complete() const {
        if (seen_ >= kMostCandidates) return true;
        Doubles reach = broadcast(kInfinity);
        const auto limit = [&](const Doubles& distance) { reach = distance < reach ? distance : reach; };
        const auto border = [&](double origin, int cells) { return origin + cells * grid_.cell_size; };
        if (left_ > 0) limit(x_ - border(grid_.left, left_));
        if (top_ > 0) limit(y_ - border(grid_.top, top_));
        if (right_ + 1 < grid_.columns) limit(border(grid_.left, right_ + 1) - x_);
        if (bottom_ + 1 < grid_.rows) limit(border(grid_.top, bottom_ + 1) - y_);
        bool all = true;
        for (int l = 0; l < kDoubles; ++l)
            all = all && lane(nearest_[kNeighbours - 1], l) <= lane(reach, l) * lane(reach, l);
        return all;
    }

    const Grid& grid_;
    double min_distance_sq_;
    int left_, right_, top_, bottom_;  // visited cells
    int seen_ = 0;
    Doubles x_{}, y_{};
    Doubles nearest_[kNeighbours];  // nearest first
};

inline void sort(Floats values[kNeighbours]) {
    for (int i = 0; i < kNeighbours; ++i)
        for (int j = i + 1; j < kNeighbours; ++j) {
            const Floats low = smaller(values[i], values[j]);
            values[j] = larger(values[i], values[j]);
            values[i] = low;
        }
}

// Way from a point to a neighbour in this image and in the other; a lane a point.
struct Ways {
    float x[kFloats], y[kFloats], other_x[kFloats], other_y[kFloats];
};

inline void features_of(const Ways ways[kNeighbours], Floats features[kNeighbourFeaturesPerImage]) {
    Floats there[kNeighbours], change[kNeighbours], farthest{}, close{};
    for (int k = 0; k < kNeighbours; ++k) {
        const Floats hx = load(ways[k].x), hy = load(ways[k].y);
        const Floats tx = load(ways[k].other_x), ty = load(ways[k].other_y);
        const Floats here = square_root(hx * hx + hy * hy);
        const Floats moved = square_root((tx - hx) * (tx - hx) + (ty - hy) * (ty - hy));
        there[k] = smaller(square_root(tx * tx + ty * ty), broadcast(kFarthest));
        change[k] = smaller(moved / (here + kSmallestLength), broadcast(10 * kFarthest));
        farthest = larger(farthest, here);
        close += there[k] < kClose ? broadcast(1.0f / kNeighbours) : Floats{};
    }
    farthest = farthest > 0.0f ? smaller(farthest, broadcast(kFarthest)) : broadcast(kFarthest);
    sort(there);
    sort(change);
    features[0] = logarithm(there[0] + kSmallest);
    features[1] = logarithm(there[1] + kSmallest);
    features[2] = logarithm(there[3] + kSmallest);
    features[3] = logarithm(there[7] + kSmallest);
    features[4] = logarithm(change[0] + kSmallestChange);
    features[5] = logarithm(change[1] + kSmallestChange);
    features[6] = logarithm(change[3] + kSmallestChange);
    features[7] = logarithm(farthest + kSmallest);
    features[8] = close;
}

}  // namespace

void neighbour_features(const Grid& grid, double min_distance, int stride, float* out) {
    int cell = 0;
    for (int first = 0; first < grid.n; first += kFloats) {
        const int end = first + kFloats < grid.n ? first + kFloats : grid.n;
        Ways ways[kNeighbours] = {};
        for (int i = first; i < end;) {
            while (grid.start[cell + 1] <= i) ++cell;
            // Lanes in one cell, or in two next to each other, mostly look at the same candidates.
            const int next_cell = (cell + 1) % grid.columns != 0 ? cell + 1 : cell;
            int last = i + kDoubles < end ? i + kDoubles : end;
            if (last > grid.start[next_cell + 1]) last = grid.start[next_cell + 1];
            const Search search(grid, i, last, cell, last > grid.start[cell + 1] ? next_cell : cell, min_distance);
            for (int l = 0; i + l < last; ++l) {
                const int lane = i + l - first;
                for (int k = 0; k < kNeighbours; ++k) {
                    const int j = search.neighbour(k, l);
                    if (j < 0) {
                        ways[k].other_x[lane] = 1e9f;  // no neighbour: saturates all but the distance here
                        continue;
                    }
                    ways[k].x[lane] = static_cast<float>(grid.x[j] - grid.x[i + l]);
                    ways[k].y[lane] = static_cast<float>(grid.y[j] - grid.y[i + l]);
                    ways[k].other_x[lane] = static_cast<float>(grid.other_x[j] - grid.other_x[i + l]);
                    ways[k].other_y[lane] = static_cast<float>(grid.other_y[j] - grid.other_y[i + l]);
                }
            }
            i = last;
        }
        Floats features[kNeighbourFeaturesPerImage];
        features_of(ways, features);
        for (int i = first; i < end; ++i)
            for (int f = 0; f < kNeighbourFeaturesPerImage; ++f)
                out[static_cast<long long>(grid.point[i]) * stride + f] = lane(features[f], i - first);
    }
}

}  // namespace caransac::CARANSAC_ISA

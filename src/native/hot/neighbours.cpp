#include "neighbours.h"

#ifdef __AVX512F__

// Packs of AVX2 are faster here: the points of a wider pack are further apart and need more candidates each.
namespace caransac {
namespace avx2 {
void neighbour_features(const Grid& grid, int stride, float* out);
}
namespace CARANSAC_ISA {
void neighbour_features(const Grid& grid, int stride, float* out) { avx2::neighbour_features(grid, stride, out); }
}  // namespace CARANSAC_ISA
}  // namespace caransac

#else

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

constexpr float kClose = 0.25f;     // neighbours closer than this in the other image stay close
constexpr float kFarthest = 5;      // distances saturate here, relative changes at ten times this value
constexpr float kSmallest = 0.01f;  // added before logarithms of distances
constexpr float kSmallestChange = 0.05f, kSmallestLength = 0.02f;

constexpr int kMostCandidates = 1024;  // dense clusters are truncated here, an approximation that bounds the work
constexpr int kMostLooks = 64;         // maximum number of changes of a window; more than one is rare
constexpr int kMostColumns = 12;       // maximum distance, in columns, of points that are searched together
constexpr float kInfinity = 1e30f;     // larger than any squared distance in a grid
constexpr float kFarAway = 1e15f;      // coordinate of a point at that distance

// Minimum and maximum of non-negative numbers. Their bits have the same order, and some processors compare integers at
// twice the speed. x86 without AVX2 has no instruction for it.
#ifdef __AVX2__
inline Floats lower(const Floats& a, const Floats& b) {
    const Ints i = bits_of(a), j = bits_of(b);
    return from_bits(i < j ? i : j);
}
inline Floats higher(const Floats& a, const Floats& b) {
    const Ints i = bits_of(a), j = bits_of(b);
    return from_bits(i > j ? i : j);
}
#else
inline Floats lower(const Floats& a, const Floats& b) { return smaller(a, b); }
inline Floats higher(const Floats& a, const Floats& b) { return larger(a, b); }
#endif

inline void order(Floats& a, Floats& b) {
    const Floats first = lower(a, b);
    b = higher(a, b);
    a = first;
}

// Sorts eight numbers in each lane, smallest first, by Batcher's network (AFIPS 1968).
inline void sort(Floats v[kNeighbours]) {
    order(v[0], v[1]), order(v[2], v[3]), order(v[4], v[5]), order(v[6], v[7]);
    order(v[0], v[2]), order(v[1], v[3]), order(v[4], v[6]), order(v[5], v[7]);
    order(v[1], v[2]), order(v[5], v[6]);
    order(v[0], v[4]), order(v[1], v[5]), order(v[2], v[6]), order(v[3], v[7]);
    order(v[2], v[4]), order(v[3], v[5]);
    order(v[1], v[2]), order(v[3], v[4]), order(v[5], v[6]);
}

// The eight smallest of two sorted sequences of eight, sorted: the last steps of Batcher's bitonic network.
inline void keep_smallest(Floats kept[kNeighbours], const Floats others[kNeighbours]) {
    for (int k = 0; k < kNeighbours; ++k) kept[k] = lower(kept[k], others[kNeighbours - 1 - k]);
    for (int stride = kNeighbours / 2; stride > 0; stride /= 2)
        for (int k = 0; k < kNeighbours; ++k)
            if ((k & stride) == 0) order(kept[k], kept[k + stride]);
}

// A squared distance and the index of its candidate in one number: the index replaces the last bits of the mantissa.
// Minima and maxima then find the nearest candidates without branches.
constexpr int kOrdinalBits = kMostCandidates - 1;

inline Floats with_ordinal(const Floats& distance_sq, const Ints& ordinal) {
    return from_bits((bits_of(distance_sq) & ~kOrdinalBits) | ordinal);
}

inline int ordinal_of(float key) {
    int bits;
    std::memcpy(&bits, &key, sizeof(bits));
    return bits & kOrdinalBits;
}

// Whether a key, or the largest of several keys, belongs to a neighbour.
inline bool is_found(float key) { return key < 0.5f * kInfinity; }

// Cells left .. right in rows top .. bottom.
struct Window {
    int left, right, top, bottom;
    bool holds(const Window& other) const {
        return left <= other.left && other.right <= right && top <= other.top && other.bottom <= bottom;
    }
};

// Distance divided by the spread. Closer neighbours do not count: detectors put several keypoints on one corner, which
// agree with each other even if the match is wrong. The networks were trained with this value.
constexpr double kMinDistance = 0.012;
constexpr float kMinDistanceSq = static_cast<float>(kMinDistance * kMinDistance);

// Vector from a point to a neighbour, in this image and in the other.
struct Way {
    float x, y, other_x, other_y, z = 0, other_z = 0;
};

// Finds the neighbours of a few adjacent points, one per lane.
class Search {
  public:
    explicit Search(const Grid& grid)
        : grid_(grid),
          left_(static_cast<float>(grid.left)),
          top_(static_cast<float>(grid.top)),
          columns_per_unit_(static_cast<float>(grid.columns_per_unit)),
          rows_per_unit_(static_cast<float>(grid.rows_per_unit)),
          reach_(1 / rows_per_unit_) {
        int lanes[kFloats];
        for (int l = 0; l < kFloats; ++l) lanes[l] = l;
        std::memcpy(&lanes_, lanes, sizeof(lanes_));
    }

    // Searches for points first .. last - 1 of a row, no more than there are lanes. Starts with the range of the
    // previous points, and extends it as far as the result requires.
    void look(int first, int last, int row) {
        first_ = first;
        last_ = last;
        x_ = lanes_ < last - first ? load(grid_.x + first) : broadcast(grid_.x[last - 1]);
        y_ = lanes_ < last - first ? load(grid_.y + first) : broadcast(grid_.y[last - 1]);
        float reach = reach_;
        Window window = around(broadcast(reach));
        for (int looks = 0; looks < kMostLooks; ++looks) {
            collect(window, row);
            find_nearest();
            const Floats reach_sq = from_bits(bits_of(nearest_[kNeighbours - 1]) | kOrdinalBits);  // an upper bound
            const float farthest_sq = largest(reach_sq);
            const bool found = is_found(farthest_sq);
            reach = found ? ::sqrtf(farthest_sq) : 2 * reach;
            if (found) reach_ = reach;
            const Window needed = around(found ? square_root(reach_sq) : broadcast(reach));
            if (count_ == kMostCandidates) {  // a narrower window may contain the truncated candidates
                if (!window.holds(needed) || needed.holds(window)) break;
            } else if (window.holds(found ? needed : Window{0, grid_.columns - 1, 0, grid_.rows - 1})) {
                break;
            }
            window = needed;
        }
    }

    // Vectors from the point of each lane to its neighbours.
    void ways(Way ways[kNeighbours * kFloats]) const {
        float keys[kNeighbours * kFloats];
        for (int k = 0; k < kNeighbours; ++k) store(keys + k * kFloats, nearest_[k]);
        for (int l = 0; l < kFloats; ++l) {
            const Match& from = grid_.match[point(l)];
            for (int i = l; i < kNeighbours * kFloats; i += kFloats) {
                if (!is_found(keys[i])) {
                    ways[i] = {0, 0, 1e9f, 0};  // saturates everything except the distance here
                    continue;
                }
                const int neighbour = index_[ordinal_of(keys[i])];
                const Match& to = grid_.match[neighbour];
                ways[i] = {static_cast<float>(to.x - from.x), static_cast<float>(to.y - from.y),
                           static_cast<float>(to.other_x - from.other_x),
                           static_cast<float>(to.other_y - from.other_y)};
                if (grid_.z != nullptr) ways[i].z = static_cast<float>(grid_.z[neighbour] - grid_.z[point(l)]);
                if (grid_.other_z != nullptr)
                    ways[i].other_z = static_cast<float>(grid_.other_z[neighbour] - grid_.other_z[point(l)]);
            }
        }
    }

  private:
    // The last point fills the remaining lanes.
    int point(int l) const { return first_ + l < last_ ? first_ + l : last_ - 1; }

    int column(float x) const { return cell_index((x - left_) * columns_per_unit_, grid_.columns); }
    int row(float y) const { return cell_index((y - top_) * rows_per_unit_, grid_.rows); }
    Window around(const Floats& reach) const {
        return {column(-largest(reach - x_)), column(largest(reach + x_)), row(-largest(reach - y_)),
                row(largest(reach + y_))};
    }

    // Collects the points of a window: the row of the query points first, then outwards.
    void collect(const Window& window, int row) {
        count_ = 0;
        append(window, row);
        for (int away = 1; row - away >= window.top || row + away <= window.bottom; ++away) {
            if (row - away >= window.top) append(window, row - away);
            if (row + away <= window.bottom) append(window, row + away);
        }
        for (int m = count_; m % kNeighbours != 0; ++m) candidate_x_[m] = candidate_y_[m] = kFarAway;
    }

    void append(const Window& window, int row) {
        const int* start = grid_.start + row * grid_.columns;
        int begin = start[window.left], end = start[window.right + 1];
        const int room = kMostCandidates - count_;
        if (end - begin > room) {  // those nearest to the query points in memory
            const int middle = first_ - room / 2;
            begin = middle < begin ? begin : middle < end - room ? middle : end - room;
            end = begin + room;
        }
        for (int m = begin, to = count_; m < end; m += kFloats, to += kFloats) {
            store(candidate_x_ + to, load(grid_.x + m));
            store(candidate_y_ + to, load(grid_.y + m));
            const Ints index = lanes_ + m;
            std::memcpy(index_ + to, &index, sizeof(index));
        }
        count_ += end - begin;
    }

    void find_nearest() {
        Floats nearest[kNeighbours], keys[kNeighbours];
        find_keys(0, nearest);
        for (int m = kNeighbours; m < count_; m += kNeighbours) {
            find_keys(m, keys);
            keep_smallest(nearest, keys);
        }
        for (int k = 0; k < kNeighbours; ++k) nearest_[k] = nearest[k];
    }

    // The keys of candidate m and the following ones, smallest first.
    void find_keys(int m, Floats keys[kNeighbours]) const {
        const Ints first = Ints{} + m;
        for (int k = 0; k < kNeighbours; ++k) {
            const Floats dx = candidate_x_[m + k] - x_, dy = candidate_y_[m + k] - y_;
            const Floats distance_sq = dx * dx + dy * dy;
            keys[k] = with_ordinal(distance_sq > kMinDistanceSq ? distance_sq : broadcast(kInfinity), first + k);
        }
        sort(keys);
    }

    const Grid& grid_;
    const float left_, top_, columns_per_unit_, rows_per_unit_;
    float reach_;  // distance of the neighbours of the previous points
    int first_ = 0, last_ = 0, count_ = 0;
    Ints lanes_;
    Floats x_{}, y_{}, nearest_[kNeighbours];  // keys, nearest first
    float candidate_x_[kMostCandidates + kFloats], candidate_y_[kMostCandidates + kFloats];
    int index_[kMostCandidates + kFloats];
};

inline Floats log_distance(const Floats& distance_sq) {
    return logarithm(smaller(square_root(distance_sq), broadcast(kFarthest)) + kSmallest);
}

inline Floats log_change(const Floats& change_sq) {
    return logarithm(smaller(square_root(change_sq), broadcast(10 * kFarthest)) + kSmallestChange);
}

// Directions in space and in an image cannot be compared, so only the length of a vector counts there.
template <bool kInSpace>
inline void features_of(const Way ways[kNeighbours * kFloats], Floats features[kNeighbourFeaturesPerImage]) {
    float here_sq[kNeighbours * kFloats], other_sq[kNeighbours * kFloats], moved_sq[kNeighbours * kFloats];
    for (int i = 0; i < kNeighbours * kFloats; ++i) {
        const Way way = ways[i];
        const float dx = way.other_x - way.x, dy = way.other_y - way.y;
        here_sq[i] = way.x * way.x + way.y * way.y;
        other_sq[i] = way.other_x * way.other_x + way.other_y * way.other_y;
        moved_sq[i] = dx * dx + dy * dy;
        if constexpr (kInSpace) {
            here_sq[i] += way.z * way.z;
            other_sq[i] += way.other_z * way.other_z;
            const float longer = ::sqrtf(other_sq[i]) - ::sqrtf(here_sq[i]);
            moved_sq[i] = longer * longer;
        }
    }
    Floats there_sq[kNeighbours], change_sq[kNeighbours], farthest_sq{}, close{};
    for (int k = 0; k < kNeighbours; ++k) {
        const Floats squared = load(here_sq + k * kFloats), length = square_root(squared) + kSmallestLength;
        there_sq[k] = load(other_sq + k * kFloats);
        change_sq[k] = load(moved_sq + k * kFloats) / (length * length);
        farthest_sq = larger(farthest_sq, squared);
        close += there_sq[k] < kClose * kClose ? broadcast(1.0f / kNeighbours) : Floats{};
    }
    farthest_sq = farthest_sq > 0.0f ? farthest_sq : broadcast(kFarthest * kFarthest);
    sort(there_sq);
    sort(change_sq);
    features[0] = log_distance(there_sq[0]);
    features[1] = log_distance(there_sq[1]);
    features[2] = log_distance(there_sq[3]);
    features[3] = log_distance(there_sq[7]);
    features[4] = log_change(change_sq[0]);
    features[5] = log_change(change_sq[1]);
    features[6] = log_change(change_sq[3]);
    features[7] = log_distance(farthest_sq);
    features[8] = close;
}

// Number of points of a row that are searched together. They should share most candidates.
inline int end_of_group(const Grid& grid, int first, int row) {
    const int* start = grid.start + row * grid.columns;
    const int column = cell_index((grid.match[first].x - grid.left) * grid.columns_per_unit, grid.columns);
    const int end = start[column + kMostColumns < grid.columns ? column + kMostColumns : grid.columns];
    return first + kFloats < end ? first + kFloats : end;
}

}  // namespace

void neighbour_features(const Grid& grid, int stride, float* out) {
    Search search(grid);
    const bool in_space = grid.z != nullptr || grid.other_z != nullptr;
    Way ways[kNeighbours * kFloats];
    Floats features[kNeighbourFeaturesPerImage];
    for (int first = 0, row = 0, end; first < grid.n; first = end) {
        while (grid.start[(row + 1) * grid.columns] <= first) ++row;
        end = end_of_group(grid, first, row);
        search.look(first, end, row);
        search.ways(ways);
        if (in_space)
            features_of<true>(ways, features);
        else
            features_of<false>(ways, features);
        for (int i = first; i < end; ++i)
            for (int f = 0; f < kNeighbourFeaturesPerImage; ++f)
                out[static_cast<long long>(grid.point[i]) * stride + f] = lane(features[f], i - first);
    }
}

}  // namespace caransac::CARANSAC_ISA

#endif

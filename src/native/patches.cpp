#include "patches.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <Eigen/Dense>

#include "hot/kernels.h"

namespace caransac {
namespace {

constexpr int kMaxWindow = 48;        // largest radius of a window
constexpr double kMapDeviation = 20;  // length in pixels of differences that outweigh the prior of a map
constexpr double kNearMap = 3;        // scale in pixels of the Cauchy weights of neighbours
constexpr int kMaxNeighbours = 16;
constexpr int kMostCandidates = 256, kMostRings = 32;  // bound the work if the matches are clustered

// Matches sorted into square cells of image 1.
class Cells {
  public:
    Cells(const PointPair* matches, int n) {
        double high[2];
        low_[0] = high[0] = matches[0].x1;
        low_[1] = high[1] = matches[0].y1;
        for (int i = 1; i < n; ++i) {
            low_[0] = std::min(low_[0], matches[i].x1), high[0] = std::max(high[0], matches[i].x1);
            low_[1] = std::min(low_[1], matches[i].y1), high[1] = std::max(high[1], matches[i].y1);
        }
        const double width = std::max(high[0] - low_[0], 1e-6), height = std::max(high[1] - low_[1], 1e-6);
        size_ = std::max(std::sqrt(3 * width * height / n), 1e-3 * std::max(width, height));
        columns_ = static_cast<int>(width / size_) + 1;
        rows_ = static_cast<int>(height / size_) + 1;
        start_.assign(static_cast<size_t>(columns_) * rows_ + 2, 0);
        for (int i = 0; i < n; ++i) ++start_[cell(matches[i]) + 2];
        for (size_t c = 2; c < start_.size(); ++c) start_[c] += start_[c - 1];
        point_.resize(n);
        for (int i = 0; i < n; ++i) point_[start_[cell(matches[i]) + 1]++] = i;
    }

    // The nearest other matches of match i, in no particular order. Returns their number.
    int nearest(const PointPair* matches, int i, int count, int* found) const {
        double distance[kMaxNeighbours];
        int number = 0, seen = 0;
        const auto look = [&](int column, int row) {
            if (column < 0 || row < 0 || column >= columns_ || row >= rows_) return;
            const size_t c = column + static_cast<size_t>(columns_) * row;
            for (int at = start_[c]; at < start_[c + 1] && seen < kMostCandidates; ++at) {
                const int j = point_[at];
                if (j == i) continue;
                ++seen;
                const double dx = matches[j].x1 - matches[i].x1, dy = matches[j].y1 - matches[i].y1;
                const double d = dx * dx + dy * dy;
                if (number == count && d >= distance[number - 1]) continue;
                int place = number < count ? number++ : number - 1;
                for (; place > 0 && distance[place - 1] > d; --place) {
                    distance[place] = distance[place - 1];
                    found[place] = found[place - 1];
                }
                distance[place] = d;
                found[place] = j;
            }
        };
        const int column = at(matches[i].x1, 0), row = at(matches[i].y1, 1);
        look(column, row);
        for (int ring = 1; ring <= kMostRings && seen < kMostCandidates; ++ring) {
            const double reach = (ring - 1) * size_;  // everything closer has been seen
            if (number == count && distance[number - 1] <= reach * reach) break;
            for (int k = -ring; k <= ring; ++k) look(column + k, row - ring), look(column + k, row + ring);
            for (int k = 1 - ring; k < ring; ++k) look(column - ring, row + k), look(column + ring, row + k);
        }
        return number;
    }

  private:
    int at(double value, int axis) const { return static_cast<int>((value - low_[axis]) / size_); }
    size_t cell(const PointPair& match) const {
        return at(match.x1, 0) + static_cast<size_t>(columns_) * at(match.y1, 1);
    }

    double low_[2], size_;
    int columns_, rows_;
    std::vector<int> start_, point_;
};

using Map = Eigen::Matrix2d;

Map map_of_all(const PointPair* matches, int n) {
    double mean[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) {
        mean[0] += matches[i].x1 / n, mean[1] += matches[i].y1 / n;
        mean[2] += matches[i].x2 / n, mean[3] += matches[i].y2 / n;
    }
    Map from = Map::Zero(), to = Map::Zero();
    for (int i = 0; i < n; ++i) {
        const Eigen::Vector2d a(matches[i].x1 - mean[0], matches[i].y1 - mean[1]);
        const Eigen::Vector2d b(matches[i].x2 - mean[2], matches[i].y2 - mean[3]);
        from += a * a.transpose();
        to += b * a.transpose();
    }
    const double determinant = from.determinant(), trace = from.trace();
    if (!(determinant > 1e-6 * trace * trace)) return Map::Identity();  // all matches on a line
    return to * from.inverse();
}

}  // namespace

void local_maps(const PointPair* matches, int n, int neighbours, double* out) {
    if (n == 0) return;
    const Map common = map_of_all(matches, n);
    const Cells cells(matches, n);
    const double prior = kMapDeviation * kMapDeviation;
    neighbours = std::min(neighbours, kMaxNeighbours);
    for (int i = 0; i < n; ++i) {
        int near[kMaxNeighbours];
        const int count = cells.nearest(matches, i, neighbours, near);
        Map map = Map::Zero();
        for (int round = 0; round < 3; ++round) {
            Map from = prior * Map::Identity(), to = prior * common;
            for (int k = 0; k < count; ++k) {
                const PointPair &here = matches[i], &there = matches[near[k]];
                const Eigen::Vector2d a(there.x1 - here.x1, there.y1 - here.y1),
                    b(there.x2 - here.x2, there.y2 - here.y2);
                const double weight = round == 0 ? 1.0 : 1 / (1 + (b - map * a).squaredNorm() / (kNearMap * kNearMap));
                from += weight * a * a.transpose();
                to += weight * b * a.transpose();
            }
            map = to * from.inverse();
        }
        const double entries[4] = {map(0, 0), map(0, 1), map(1, 0), map(1, 1)};
        std::copy(entries, entries + 4, out + 4 * static_cast<size_t>(i));
    }
}

PatchShape patch_shape(int radius) {
    PatchShape shape{};
    shape.radius = radius;
    const double spread = 0.6 * radius;
    double total = 0;
    for (int y = -radius; y <= radius; ++y) {
        for (int x = -radius; x <= radius; ++x, ++shape.n) {
            shape.x[shape.n] = static_cast<float>(x);
            shape.y[shape.n] = static_cast<float>(y);
            total += shape.weight[shape.n] = static_cast<float>(std::exp(-(x * x + y * y) / (2 * spread * spread)));
        }
    }
    for (int i = 0; i < shape.n; ++i) shape.weight[i] /= static_cast<float>(total);
    shape.n = padded(shape.n);
    return shape;
}

void refine_matches(const Photograph& image1, const Photograph& image2, const PointPair* matches, const double* maps,
                    int n, int level, int radius, const PatchOptions& options, RefinedMatch* out) {
    const PatchShape shape = patch_shape(radius);
    WindowBuffer buffer1, buffer2;
    for (int i = 0; i < n; ++i) {
        const double* map = maps + 4 * static_cast<size_t>(i);
        RefinedMatch& refined = out[i];
        refined = {matches[i].x2, matches[i].y2, {map[0], map[1], map[2], map[3]}, 0, 0, {0, 0, 0}, false};
        const double scale = std::sqrt(std::abs(map[0] * map[3] - map[1] * map[2]));
        if (!(scale > 1.0 / (1 << (kMaxLevel + 1)) && scale < 1 << (kMaxLevel + 1))) continue;
        const int change = static_cast<int>(std::lround(std::log2(scale)));
        const int levels[2] = {std::min(level + std::max(-change, 0), kMaxLevel),
                               std::min(level + std::max(change, 0), kMaxLevel)};
        const double unit1 = 1 << levels[0], unit2 = 1 << levels[1];
        const double x1 = (matches[i].x1 + 0.5) / unit1 - 0.5, y1 = (matches[i].y1 + 0.5) / unit1 - 0.5;
        const double x2 = (matches[i].x2 + 0.5) / unit2 - 0.5, y2 = (matches[i].y2 + 0.5) / unit2 - 0.5;
        const int size1[2] = {image1.width >> levels[0], image1.height >> levels[0]};
        const int size2[2] = {image2.width >> levels[1], image2.height >> levels[1]};
        if (!(x1 >= 0 && y1 >= 0 && x1 <= size1[0] - 1 && y1 <= size1[1] - 1)) continue;
        if (!(x2 >= 0 && y2 >= 0 && x2 <= size2[0] - 1 && y2 <= size2[1] - 1)) continue;
        const int point[2] = {static_cast<int>(std::lround(x1)), static_cast<int>(std::lround(y1))};
        const double fraction[2] = {point[0] - x1, point[1] - y1};
        PatchAlignment aligned{};
        for (int k = 0; k < 4; ++k) aligned.map[k] = map[k] * unit1 / unit2;
        const double* m = aligned.map;
        aligned.centre[0] = x2 + m[0] * fraction[0] + m[1] * fraction[1];
        aligned.centre[1] = y2 + m[2] * fraction[0] + m[3] * fraction[1];
        const double extent = std::max(std::abs(m[0]) + std::abs(m[1]), std::abs(m[2]) + std::abs(m[3])) * radius;
        const double reach = extent + options.max_shift + 2;
        if (!(reach <= kMaxWindow)) continue;
        const Window& first = buffer1.read(image1, levels[0], point[0], point[1], radius + 1);
        const Window& second =
            buffer2.read(image2, levels[1], aligned.centre[0], aligned.centre[1], static_cast<int>(std::ceil(reach)));
        if (!kernels().align_patch(shape, first, point, second, size1, size2, options, aligned)) continue;
        const double at[2] = {aligned.centre[0] - m[0] * fraction[0] - m[1] * fraction[1],
                              aligned.centre[1] - m[2] * fraction[0] - m[3] * fraction[1]};
        refined.x2 = (at[0] + 0.5) * unit2 - 0.5;
        refined.y2 = (at[1] + 0.5) * unit2 - 0.5;
        for (int k = 0; k < 4; ++k) refined.map[k] = m[k] * unit2 / unit1;
        for (int k = 0; k < 3; ++k) refined.information[k] = aligned.information[k] / (unit2 * unit2);
        refined.before = aligned.before;
        refined.after = aligned.after;
        refined.aligned = true;
    }
}

}  // namespace caransac

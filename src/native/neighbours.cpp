#include "neighbours.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace caransac {
namespace {

constexpr double kClose = 0.25;     // neighbours nearer than this in the other image stay close
constexpr double kFarthest = 5;     // distances saturate here, relative changes at ten times it
constexpr double kSmallest = 0.01;  // added before logarithms of distances
constexpr double kSmallestChange = 0.05, kSmallestLength = 0.02;

// Points of one image in a uniform grid over where most of them are; those outside go to the border cells.
class Grid {
  public:
    Grid(const double* x, const double* y, int n) : members_(n), x_(n), y_(n) {
        constexpr double kExtent = 4, kPerCell = 4;  // in spreads: nearly all points lie within two of the centre
        side_ = std::clamp(static_cast<int>(std::sqrt(n / kPerCell)), 1, 256);
        cell_size_ = kExtent / side_;
        start_.assign(side_ * side_ + 1, 0);
        std::vector<int> cell(n);
        for (int i = 0; i < n; ++i) ++start_[(cell[i] = index(x[i]) + side_ * index(y[i])) + 1];
        for (int c = 0; c < side_ * side_; ++c) start_[c + 1] += start_[c];
        std::vector<int> next(start_.begin(), start_.end() - 1);
        for (int i = 0; i < n; ++i) {
            const int at = next[cell[i]]++;
            members_[at] = i;
            x_[at] = x[i];
            y_[at] = y[i];
        }
    }

    // The nearest points to (x, y) beyond min_distance, farthest first; returns how many (at most kNeighbours).
    // Rings of cells outwards until no nearer point can follow; crowded cells are cut short, an approximation that
    // bounds the work on clusters.
    int nearest(double x, double y, double min_distance, int* found, double* distance_sq) const {
        constexpr int kMostCandidates = 128;
        const int cx = index(x), cy = index(y);
        int count = 0, seen = 0;
        for (int ring = 0; ring < side_ && seen < kMostCandidates; ++ring) {
            const double reached = (ring - 1) * cell_size_;  // everything nearer than this has been seen
            if (count == kNeighbours && reached > 0 && reached * reached > distance_sq[0]) break;
            for (int row = std::max(cy - ring, 0); row <= std::min(cy + ring, side_ - 1); ++row) {
                const bool edge_row = row == cy - ring || row == cy + ring;
                for (int column = cx - ring; column <= cx + ring; column += edge_row ? 1 : std::max(2 * ring, 1)) {
                    if (column < 0 || column >= side_) continue;
                    const int cell = column + side_ * row;
                    for (int m = start_[cell]; m < start_[cell + 1] && seen < 2 * kMostCandidates; ++m) {
                        const double dx = x_[m] - x, dy = y_[m] - y, d = dx * dx + dy * dy;
                        ++seen;
                        if (d > min_distance * min_distance) insert(members_[m], d, found, distance_sq, count);
                    }
                }
            }
        }
        return count;
    }

  private:
    int index(double coordinate) const {
        const double cell = std::floor(coordinate / cell_size_ + 0.5 * side_);
        return static_cast<int>(std::clamp(cell, 0.0, side_ - 1.0));
    }

    // Keeps the kNeighbours smallest distances, the largest of them in front.
    static void insert(int j, double d, int* found, double* distance_sq, int& count) {
        int place = 0;
        if (count < kNeighbours) {
            for (place = count++; place > 0 && distance_sq[place - 1] < d; --place) {
                distance_sq[place] = distance_sq[place - 1];
                found[place] = found[place - 1];
            }
        } else {
            if (d >= distance_sq[0]) return;
            for (; place + 1 < count && distance_sq[place + 1] > d; ++place) {
                distance_sq[place] = distance_sq[place + 1];
                found[place] = found[place + 1];
            }
        }
        distance_sq[place] = d;
        found[place] = j;
    }

    int side_;
    double cell_size_;
    std::vector<int> start_, members_;  // the points of cell c are members_[start_[c]] .. members_[start_[c + 1] - 1]
    std::vector<double> x_, y_;         // their coordinates, in the same order
};

double log_distance(double d) { return std::log(std::min(d, kFarthest) + kSmallest); }

void features_of_image(const double* here_x, const double* here_y, const double* there_x, const double* there_y, int n,
                       double min_distance, double* out) {
    const Grid grid(here_x, here_y, n);
    for (int i = 0; i < n; ++i, out += kNeighbourFeatures) {
        int found[kNeighbours];
        double here_sq[kNeighbours], there[kNeighbours], change[kNeighbours];
        const int count = grid.nearest(here_x[i], here_y[i], min_distance, found, here_sq);
        int close = 0;
        for (int k = 0; k < kNeighbours; ++k) {
            there[k] = kFarthest;
            change[k] = 10 * kFarthest;
            if (k >= count) continue;
            const double hx = here_x[found[k]] - here_x[i], hy = here_y[found[k]] - here_y[i];
            const double tx = there_x[found[k]] - there_x[i], ty = there_y[found[k]] - there_y[i];
            there[k] = std::sqrt(tx * tx + ty * ty);
            const double moved = std::sqrt((tx - hx) * (tx - hx) + (ty - hy) * (ty - hy));
            change[k] = std::min(moved / (std::sqrt(here_sq[k]) + kSmallestLength), 10 * kFarthest);
            close += there[k] < kClose;
        }
        std::sort(there, there + kNeighbours);
        std::sort(change, change + kNeighbours);
        const double features[kNeighbourFeaturesPerImage] = {
            log_distance(there[0]),
            log_distance(there[1]),
            log_distance(there[3]),
            log_distance(there[7]),
            std::log(change[0] + kSmallestChange),
            std::log(change[1] + kSmallestChange),
            std::log(change[3] + kSmallestChange),
            log_distance(count > 0 ? std::sqrt(here_sq[0]) : kFarthest),
            static_cast<double>(close) / kNeighbours};
        std::copy_n(features, kNeighbourFeaturesPerImage, out);
    }
}

}  // namespace

void neighbour_features(const Columns<double>& p, double min_distance, double* out) {
    features_of_image(p.u1, p.v1, p.u2, p.v2, p.n, min_distance, out);
    features_of_image(p.u2, p.v2, p.u1, p.v1, p.n, min_distance, out + kNeighbourFeaturesPerImage);
}

}  // namespace caransac

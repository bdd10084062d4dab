#include "mirroring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace caransac {
namespace {

// The points of an image around their mean, divided by their spread.
struct Scaled {
    std::vector<float> x, y;

    Scaled(const double* u, const double* v, int n) : x(n), y(n) {
        const double mean_u = std::accumulate(u, u + n, 0.0) / n, mean_v = std::accumulate(v, v + n, 0.0) / n;
        double sum = 0;
        for (int i = 0; i < n; ++i) sum += (u[i] - mean_u) * (u[i] - mean_u) + (v[i] - mean_v) * (v[i] - mean_v);
        const double size = std::max(std::sqrt(sum / n), 1e-300);
        for (int i = 0; i < n; ++i) {
            x[i] = static_cast<float>((u[i] - mean_u) / size);
            y[i] = static_cast<float>((v[i] - mean_v) / size);
        }
    }
    float distance_sq(int i, int j) const { return (x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]); }
};

// Sign of the turn from point i to two others: 1, 0 or -1.
int turn(const double* u, const double* v, int i, int near, int next) {
    const double left = (u[near] - u[i]) * (v[next] - v[i]), right = (v[near] - v[i]) * (u[next] - u[i]);
    return (left > right) - (left < right);
}

}  // namespace

Turns count_turns(const Columns<double>& points, int rank) {
    Turns turns{0, 0};
    const int n = points.n;
    if (n < rank + 2) return turns;
    const Scaled first(points.u1, points.v1, n), second(points.u2, points.v2, n);
    // The nearest points found so far, sorted; the earlier one of two equally distant points comes first.
    std::vector<float> distances_sq(n), nearest_sq(rank + 2);
    std::vector<int> nearest(rank + 2);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) distances_sq[j] = first.distance_sq(i, j) + second.distance_sq(i, j);
        std::fill(nearest_sq.begin(), nearest_sq.end(), std::numeric_limits<float>::infinity());
        std::fill(nearest.begin(), nearest.end(), i);  // remains if distances are NaN
        for (int j = 0; j < n; ++j) {
            int place = rank + 1;
            if (!(distances_sq[j] < nearest_sq[place])) continue;
            for (; place > 0 && distances_sq[j] < nearest_sq[place - 1]; --place) {
                nearest_sq[place] = nearest_sq[place - 1];
                nearest[place] = nearest[place - 1];
            }
            nearest_sq[place] = distances_sq[j];
            nearest[place] = j;
        }
        const int near = nearest[rank], next = nearest[rank + 1];
        const int both = turn(points.u1, points.v1, i, near, next) * turn(points.u2, points.v2, i, near, next);
        turns.opposite += both < 0;
        turns.decided += both != 0;
    }
    return turns;
}

}  // namespace caransac

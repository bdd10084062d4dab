#include "refine.h"

#include <numeric>

#include "correspondences.h"

namespace caransac {
namespace {

// Writes the numbers from 0 to n - 1 for which is_true returns true, ascending, and returns their count; index has room
// for n + 1.
template <class Predicate>
int where(int n, int* index, Predicate is_true) {
    int count = 0;
    for (int i = 0; i < n; ++i) {
        index[count] = i;
        count += is_true(i);  // no branch, because it would be unpredictable
    }
    return count;
}

}  // namespace

Refiner::Refiner(const Columns<double>& points, const double* weights, const RefineOptions& options)
    : options_(options) {
    index_.resize(points.n + 1);
    count_ = where(points.n, index_.data(),
                   [&](int i) { return (weights == nullptr || weights[i] > 0) && is_usable(points, i); });
    usable_.gather(points, weights, index_.data(), count_);
    if (options.max_residual_sq > 0) usable_.round();
    std::iota(index_.begin(), index_.end(), 0);
}

// Selects the usable points that have a positive score.
void Refiner::select_scored() {
    count_ = where(usable_.columns().n, index_.data(), [scores = scores_.data()](int i) { return scores[i] > 0; });
}

// The selected points, or evenly spread ones among them if there are too many.
const WeightedPoints& Refiner::thinned() {
    const int most = options_.max_points;
    if (most > 0 && count_ > most) {
        const double stride = static_cast<double>(count_) / most;
        for (int i = 0; i < most; ++i) index_[i] = index_[static_cast<int>(i * stride)];
        count_ = most;
    }
    if (count_ == usable_.columns().n) return usable_;
    selected_.gather(usable_.columns(), usable_.weights(), index_.data(), count_);
    return selected_;
}

}  // namespace caransac

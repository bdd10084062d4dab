#include "score.h"

#include "epipolar.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

inline Doubles msac_score(const Doubles& residual_sq, double inverse_max_error_sq) {
    const Doubles score = 1.0 - residual_sq * inverse_max_error_sq;
    return score > 0.0 ? score : Doubles{};  // also drops NaN
}

struct PackedRays {
    Doubles first[9], translation[3], scale, offset[2];
    explicit PackedRays(const Rays& rays) : scale(broadcast(rays.scale)) {
        for (int i = 0; i < 9; ++i) first[i] = broadcast(rays.first[i]);
        for (int i = 0; i < 3; ++i) translation[i] = broadcast(rays.translation[i]);
        for (int i = 0; i < 2; ++i) offset[i] = broadcast(rays.offset[i]);
    }
    Doubles nearer_depth(const Doubles& u1, const Doubles& v1, const Doubles& u2, const Doubles& v2) const {
        return CARANSAC_ISA::nearer_depth<Doubles>(first, translation, u1, v1, scale * u2 + offset[0],
                                                   scale * v2 + offset[1]);
    }
};

}  // namespace

void residuals_sq(const double model[9], const Columns<double>& points, double* out) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const auto terms = epipolar_terms<Doubles>(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                                   load(points.v2 + i));
        store(out + i, terms.residual_sq());
    }
}

int close_points(const double model[9], const Columns<double>& points, double max_residual_sq, int* index) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    int count = 0;
    for (int i = 0; i < points.n; i += kDoubles) {
        const auto terms = epipolar_terms<Doubles>(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                                   load(points.v2 + i));
        const Doubles residual_sq = terms.residual_sq();
        for (int l = 0; l < kDoubles; ++l) {
            index[count] = i + l;
            count += lane(residual_sq, l) < max_residual_sq;  // no branch: nobody could predict it
        }
    }
    while (count > 0 && index[count - 1] >= points.n) --count;  // the padding
    return count;
}

void msac_scores(const double model[9], const Columns<double>& points, double max_error_sq, float* out) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const auto terms = epipolar_terms<Doubles>(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                                   load(points.v2 + i));
        store(out + i, msac_score(terms.residual_sq(), 1 / max_error_sq));
    }
}

void pose_scores(const double model[9], const Rays& rays, const Columns<double>& points, double max_error_sq,
                 float* out) {
    const PackedRays packed(rays);
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Doubles u1 = load(points.u1 + i), v1 = load(points.v1 + i), u2 = load(points.u2 + i),
                      v2 = load(points.v2 + i);
        const Doubles score = msac_score(epipolar_terms<Doubles>(m, u1, v1, u2, v2).residual_sq(), 1 / max_error_sq);
        store(out + i, packed.nearer_depth(u1, v1, u2, v2) > 0.0 ? score : Doubles{});
    }
}

void positive_depths(const Rays& rays, const Columns<double>& points, double* out) {
    const PackedRays packed(rays);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Doubles depth =
            packed.nearer_depth(load(points.u1 + i), load(points.v1 + i), load(points.u2 + i), load(points.v2 + i));
        store(out + i, depth > 0.0 ? broadcast(1.0) : broadcast(0.0));
    }
}

float dot(const float* a, const float* b, int n) {
    Floats sums[4] = {};
    int i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats)
        for (int k = 0; k < 4; ++k) sums[k] += load(a + i + k * kFloats) * load(b + i + k * kFloats);
    float total = static_cast<float>(sum((sums[0] + sums[1]) + (sums[2] + sums[3])));
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}

double consensus(const double model[9], const Columns<float>& points, double max_error_sq, double at_least) {
    constexpr int kBlock = 32 * kFloats;  // short enough for single-precision sums, long enough to make checks free
    Floats m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(static_cast<float>(model[i]));
    const Floats inverse = broadcast(static_cast<float>(1 / max_error_sq)), zero = Floats{};
    double total = 0;
    for (int first = 0; first < points.n; first += kBlock) {
        const int end = first + kBlock < points.n ? first + kBlock : points.n;
        Floats scores{};
        for (int i = first; i < end; i += kFloats) {
            const auto terms = epipolar_terms<Floats>(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                                      load(points.v2 + i));
            const Floats score = 1.0f - terms.residual_sq() * inverse;
            scores += score > zero ? score : zero;  // also drops NaN: padding, and the epipoles
        }
        total += sum(scores);
        // A score is at most 1 and rounding is monotone, so no order of additions exceeds this bound.
        if (total + (points.n - end) < at_least) return -1;
    }
    return total;
}

int top_models(const double* models, int num_models, const Columns<float>& points, double max_error_sq, int k,
               int* index, double* total) {
    return keep_top(num_models, k, index, total,
                    [&](int m, double at_least) { return consensus(models + 9 * m, points, max_error_sq, at_least); });
}

}  // namespace caransac::CARANSAC_ISA

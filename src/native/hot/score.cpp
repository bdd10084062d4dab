#include "score.h"

#include "epipolar.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// The pack for a type of number.
template <class Real>
using Pack = decltype(broadcast(Real{}));
template <class Real>
constexpr int kLanes = static_cast<int>(sizeof(Pack<Real>) / sizeof(Real));

template <class Real>
inline Pack<Real> msac_score(const Pack<Real>& residual_sq, Real inverse_max_error_sq) {
    const Pack<Real> score = Real{1} - residual_sq * inverse_max_error_sq;
    return score > Real{0} ? score : Pack<Real>{};  // also drops NaN
}

template <class Real>
struct PackedModel {
    Pack<Real> m[9];
    explicit PackedModel(const double model[9]) {
        for (int i = 0; i < 9; ++i) m[i] = broadcast(static_cast<Real>(model[i]));
    }
    Pack<Real> residual_sq(const Columns<Real>& points, int i) const {
        return epipolar_terms<Pack<Real>>(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                          load(points.v2 + i))
            .residual_sq();
    }
};

template <class Real>
struct PackedRays {
    Pack<Real> first[9], translation[3], scale, offset[2];
    explicit PackedRays(const Rays& rays) : scale(broadcast(static_cast<Real>(rays.scale))) {
        for (int i = 0; i < 9; ++i) first[i] = broadcast(static_cast<Real>(rays.first[i]));
        for (int i = 0; i < 3; ++i) translation[i] = broadcast(static_cast<Real>(rays.translation[i]));
        for (int i = 0; i < 2; ++i) offset[i] = broadcast(static_cast<Real>(rays.offset[i]));
    }
    Pack<Real> nearer_depth(const Columns<Real>& points, int i) const {
        return CARANSAC_ISA::nearer_depth<Pack<Real>>(first, translation, load(points.u1 + i), load(points.v1 + i),
                                                      scale * load(points.u2 + i) + offset[0],
                                                      scale * load(points.v2 + i) + offset[1]);
    }
};

template <class Real>
inline void all_msac_scores(const double model[9], const Columns<Real>& points, double max_error_sq, float* out) {
    const PackedModel<Real> packed(model);
    const Real inverse = static_cast<Real>(1 / max_error_sq);
    for (int i = 0; i < points.n; i += kLanes<Real>)
        store(out + i, msac_score<Real>(packed.residual_sq(points, i), inverse));
}

// Rays that are parallel up to this angle, a thousandth of a pixel, meet at infinity. Rounding would otherwise decide
// whether they meet in front of the cameras, with a different result in each precision.
template <class Real>
constexpr Real kInfinity = Real{1e-6};

template <class Real>
inline void all_pose_scores(const double model[9], const Rays& rays, const Columns<Real>& points, double max_error_sq,
                            float* out) {
    const PackedModel<Real> packed(model);
    const PackedRays<Real> packed_rays(rays);
    const Real inverse = static_cast<Real>(1 / max_error_sq);
    for (int i = 0; i < points.n; i += kLanes<Real>) {
        const Pack<Real> score = msac_score<Real>(packed.residual_sq(points, i), inverse);
        store(out + i, packed_rays.nearer_depth(points, i) > -kInfinity<Real> ? score : Pack<Real>{});
    }
}

}  // namespace

void residuals_sq(const double model[9], const Columns<double>& points, double* out) {
    const PackedModel<double> packed(model);
    for (int i = 0; i < points.n; i += kDoubles) store(out + i, packed.residual_sq(points, i));
}

void msac_scores(const double model[9], const Columns<double>& points, double max_error_sq, float* out) {
    all_msac_scores(model, points, max_error_sq, out);
}

void pose_scores(const double model[9], const Rays& rays, const Columns<double>& points, double max_error_sq,
                 float* out) {
    all_pose_scores(model, rays, points, max_error_sq, out);
}

void rough_msac_scores(const double model[9], const Columns<float>& points, double max_error_sq, float* out) {
    all_msac_scores(model, points, max_error_sq, out);
}

void rough_pose_scores(const double model[9], const Rays& rays, const Columns<float>& points, double max_error_sq,
                       float* out) {
    all_pose_scores(model, rays, points, max_error_sq, out);
}

void positive_depths(const Rays& rays, const Columns<double>& points, double* out) {
    const PackedRays<double> packed(rays);
    for (int i = 0; i < points.n; i += kDoubles)
        store(out + i, packed.nearer_depth(points, i) > 0.0 ? broadcast(1.0) : broadcast(0.0));
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
    constexpr int kBlock = 32 * kFloats;  // short enough for single-precision sums, long enough for cheap checks
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

#include "homography.h"

#include "loss.h"
#include "pack.h"
#include "score.h"

namespace caransac::CARANSAC_ISA {
namespace {

// One direction: x -> p = (m x) / w.
template <class T>
struct Transfer {
    T p, q, inverse_w, w;
    Transfer(const T m[9], const T& x, const T& y) {
        w = m[6] * x + m[7] * y + m[8];
        inverse_w = NumberOf<T>(1) / w;
        p = (m[0] * x + m[1] * y + m[2]) * inverse_w;
        q = (m[3] * x + m[4] * y + m[5]) * inverse_w;
    }
};

template <class T>
void broadcast_all(const double* from, T* to) {
    for (int i = 0; i < 9; ++i) to[i] = broadcast(static_cast<NumberOf<T>>(from[i]));
}

// Half the sum of the squared errors in both directions, and whether the point is in front of both cameras.
template <class T>
struct BothWays {
    Transfer<T> forth, back;
    T e[4], error_sq;
    BothWays(const T h[9], const T g[9], const T& u1, const T& v1, const T& u2, const T& v2)
        : forth(h, u1, v1), back(g, u2, v2), e{forth.p - u2, forth.q - v2, back.p - u1, back.q - v1} {
        error_sq = (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3]) * NumberOf<T>(0.5);
    }
};

}  // namespace

void transfer_errors_sq(const TwoWayHomography& model, const Columns<double>& points, double* out) {
    constexpr double kInfinity = __builtin_inf();
    Doubles h[9], g[9];
    broadcast_all(model.forth, h);
    broadcast_all(model.back, g);
    for (int i = 0; i < points.n; i += kDoubles) {
        const BothWays<Doubles> both(h, g, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                     load(points.v2 + i));
        const Doubles in_front = both.forth.w < both.back.w ? both.forth.w : both.back.w;
        store(out + i, in_front > 0.0 ? both.error_sq : broadcast(kInfinity));
    }
}

void homography_scores(const TwoWayHomography& model, const Columns<double>& points, double max_error_sq, float* out) {
    Doubles h[9], g[9];
    broadcast_all(model.forth, h);
    broadcast_all(model.back, g);
    for (int i = 0; i < points.n; i += kDoubles) {
        const BothWays<Doubles> both(h, g, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                     load(points.v2 + i));
        const Doubles in_front = both.forth.w < both.back.w ? both.forth.w : both.back.w;
        const Doubles score = 1.0 - both.error_sq * (1 / max_error_sq);
        const Doubles positive = score > 0.0 ? score : Doubles{};  // also drops NaN
        store(out + i, in_front > 0.0 ? positive : Doubles{});
    }
}

namespace {

// Total consensus of one homography; -1 as soon as it can no longer reach `at_least`. See `consensus` in score.cpp.
double homography_consensus(const TwoWayHomography& model, const Columns<float>& points, double max_error_sq,
                            double at_least) {
    constexpr int kBlock = 32 * kFloats;
    Floats h[9], g[9];
    broadcast_all(model.forth, h);
    broadcast_all(model.back, g);
    const Floats inverse = broadcast(static_cast<float>(1 / max_error_sq)), zero = Floats{};
    double total = 0;
    for (int first = 0; first < points.n; first += kBlock) {
        const int end = first + kBlock < points.n ? first + kBlock : points.n;
        Floats scores{};
        for (int i = first; i < end; i += kFloats) {
            const BothWays<Floats> both(h, g, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i),
                                        load(points.v2 + i));
            const Floats score = 1.0f - both.error_sq * inverse;
            const Floats positive = score > zero ? score : zero;  // also drops NaN: padding
            scores += smaller(both.forth.w, both.back.w) > zero ? positive : zero;
        }
        total += sum(scores);
        if (total + (points.n - end) < at_least) return -1;
    }
    return total;
}

}  // namespace

int top_homographies(const TwoWayHomography* models, int num_models, const Columns<float>& points, double max_error_sq,
                     int k, int* index, double* total) {
    return keep_top(num_models, k, index, total, [&](int m, double at_least) {
        return homography_consensus(models[m], points, max_error_sq, at_least);
    });
}

namespace {

struct PackedSums {
    Doubles moments[4][6] = {}, gradient[9] = {};
    // x, y: the point; t: its image; eu, ev: its error; weight: weight of the squared error.
    void add(const Doubles& x, const Doubles& y, const Transfer<Doubles>& t, const Doubles& eu, const Doubles& ev,
             const Doubles& weight) {
        const Doubles slope = weight * t.inverse_w, curvature = slope * t.inverse_w;
        const Doubles one = broadcast(1.0), monomials[6] = {x * x, x * y, x, y * y, y, one};
        const Doubles factors[4] = {curvature, curvature * t.p, curvature * t.q, curvature * (t.p * t.p + t.q * t.q)};
        for (int f = 0; f < 4; ++f)
            for (int m = 0; m < 6; ++m) moments[f][m] += factors[f] * monomials[m];
        const Doubles by_row[3] = {slope * eu, slope * ev, -slope * (t.p * eu + t.q * ev)}, point[3] = {x, y, one};
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) gradient[3 * r + c] += by_row[r] * point[c];
    }
    void store_to(TransferSums& out) const {
        for (int f = 0; f < 4; ++f)
            for (int m = 0; m < 6; ++m) out.moments[f][m] = sum(moments[f][m]);
        for (int i = 0; i < 9; ++i) out.gradient[i] = sum(gradient[i]);
    }
};

template <Loss kLoss>
void accumulate(const TwoWayHomography& model, const Columns<double>& points, const double* weights, double scale,
                double& cost, TransferSums sums[2]) {
    constexpr double kBehind = 1e12;  // squared error of a point behind a camera, in units of the squared scale
    Doubles h[9], g[9], total{};
    broadcast_all(model.forth, h);
    broadcast_all(model.back, g);
    PackedSums forth, back;
    for (int i = 0; i < points.n; i += kDoubles) {
        const Doubles u1 = load(points.u1 + i), v1 = load(points.v1 + i), u2 = load(points.u2 + i),
                      v2 = load(points.v2 + i);
        const BothWays<Doubles> both(h, g, u1, v1, u2, v2);
        const Doubles nearest = both.forth.w < both.back.w ? both.forth.w : both.back.w;
        const Doubles far = broadcast(kBehind * scale * scale);
        const Doubles bounded = both.error_sq < far ? both.error_sq : far;  // also for NaN
        const Doubles error_sq = nearest > 0.0 ? bounded : far;
        Doubles derivative, curvature;  // the curvature affects one of four directions and is ignored
        const Doubles weight = load(weights + i);
        const Doubles value = evaluate_loss<kLoss>(error_sq, scale, derivative, curvature);
        total += weight > 0.0 ? weight * value : Doubles{};
        const Doubles near = error_sq < far ? broadcast(1.0) : Doubles{};
        const Doubles counts = weight > 0.0 ? near : Doubles{};
        const Doubles half = 0.5 * weight * derivative * counts;
        // Excluded values may be infinite, and 0 times infinity is not 0.
        const auto clean = [&](const Doubles& value) { return counts > 0.0 ? value : Doubles{}; };
        Transfer<Doubles> there = both.forth, here = both.back;
        there.p = clean(there.p), there.q = clean(there.q), there.inverse_w = clean(there.inverse_w);
        here.p = clean(here.p), here.q = clean(here.q), here.inverse_w = clean(here.inverse_w);
        forth.add(u1, v1, there, clean(both.e[0]), clean(both.e[1]), half);
        back.add(u2, v2, here, clean(both.e[2]), clean(both.e[3]), half);
    }
    cost = sum(total);
    forth.store_to(sums[0]);
    back.store_to(sums[1]);
}

}  // namespace

void transfer_equations(const TwoWayHomography& model, const Columns<double>& points, const double* weights, Loss loss,
                        double loss_scale, double& cost, TransferSums sums[2]) {
    const auto pass = loss == Loss::kTruncated ? accumulate<Loss::kTruncated> : accumulate<Loss::kCauchy>;
    pass(model, points, weights, loss_scale, cost, sums);
}

}  // namespace caransac::CARANSAC_ISA

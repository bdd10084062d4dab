#include "reprojection.h"

#include "loss.h"
#include "pack.h"
#include "score.h"

namespace caransac::CARANSAC_ISA {
namespace {

// A projection with the same numbers in all lanes.
template <class T>
struct Packed {
    T r[9], t[3], scale, centre[2], k1;
    explicit Packed(const Projection& from) {
        const auto all = [](double value) { return broadcast(static_cast<NumberOf<T>>(value)); };
        for (int i = 0; i < 9; ++i) r[i] = all(from.rotation[i]);
        for (int i = 0; i < 3; ++i) t[i] = all(from.translation[i]);
        scale = all(from.scale);
        centre[0] = all(from.centre[0]);
        centre[1] = all(from.centre[1]);
        k1 = all(from.k1);
    }
};

// Projection of a 3D point.
template <class T>
struct Seen {
    T turned[3];  // R X
    T depth, inverse_depth;
    T x, y, radius_sq;  // the ray
    T stretch;          // scale (1 + k1 r^2)
    T eu, ev, error_sq;
    Seen() = default;
    Seen(const Packed<T>& p, const T& u1, const T& v1, const T& X, const T& Y, const T& Z) {
        for (int i = 0; i < 3; ++i) turned[i] = p.r[3 * i] * X + p.r[3 * i + 1] * Y + p.r[3 * i + 2] * Z;
        depth = turned[2] + p.t[2];
        inverse_depth = NumberOf<T>(1) / depth;
        x = (turned[0] + p.t[0]) * inverse_depth;
        y = (turned[1] + p.t[1]) * inverse_depth;
        radius_sq = x * x + y * y;
        stretch = p.scale * (NumberOf<T>(1) + p.k1 * radius_sq);
        eu = stretch * x + p.centre[0] - u1;
        ev = stretch * y + p.centre[1] - v1;
        error_sq = eu * eu + ev * ev;
    }
};

template <class T, class Real>
Seen<T> see(const Packed<T>& p, const Columns<Real>& points, int i) {
    return Seen<T>(p, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i), load(points.v2 + i),
                   load(points.w2 + i));
}

template <class T, class Real>
void score(const Projection& projection, const Columns<Real>& points, double max_error_sq, float* out) {
    const Packed<T> p(projection);
    const Real inverse = static_cast<Real>(1 / max_error_sq);
    constexpr int kLanes = sizeof(T) / sizeof(Real);
    for (int i = 0; i < points.n; i += kLanes) {
        const Seen<T> seen = see(p, points, i);
        const T score = Real(1) - seen.error_sq * inverse;
        const T positive = score > Real(0) ? score : T{};  // also drops NaN
        store(out + i, seen.depth > Real(0) ? positive : T{});
    }
}

// Total consensus of one projection; -1 as soon as it can no longer reach `at_least`. See `consensus` in score.cpp.
double reprojection_consensus(const Projection& projection, const Columns<float>& points, double max_error_sq,
                              double at_least) {
    constexpr int kBlock = 32 * kFloats;
    const Packed<Floats> p(projection);
    const Floats inverse = broadcast(static_cast<float>(1 / max_error_sq)), zero = Floats{};
    double total = 0;
    for (int first = 0; first < points.n; first += kBlock) {
        const int end = first + kBlock < points.n ? first + kBlock : points.n;
        Floats scores{};
        for (int i = first; i < end; i += kFloats) {
            const Seen<Floats> seen = see(p, points, i);
            const Floats score = 1.0f - seen.error_sq * inverse;
            const Floats positive = score > zero ? score : zero;  // also drops NaN: padding
            scores += seen.depth > zero ? positive : zero;
        }
        total += sum(scores);
        if (total + (points.n - end) < at_least) return -1;
    }
    return total;
}

}  // namespace

void reprojection_errors_sq(const Projection& projection, const Columns<double>& points, double* out) {
    constexpr double kInfinity = __builtin_inf();
    const Packed<Doubles> p(projection);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Seen<Doubles> seen = see(p, points, i);
        store(out + i, seen.depth > 0.0 ? seen.error_sq : broadcast(kInfinity));
    }
}

void reprojection_scores(const Projection& projection, const Columns<double>& points, double max_error_sq, float* out) {
    score<Doubles>(projection, points, max_error_sq, out);
}

void rough_reprojection_scores(const Projection& projection, const Columns<float>& points, double max_error_sq,
                               float* out) {
    score<Floats>(projection, points, max_error_sq, out);
}

int top_projections(const Projection* projections, int num_models, const Columns<float>& points, double max_error_sq,
                    int k, int* index, double* total) {
    return keep_top(num_models, k, index, total, [&](int m, double at_least) {
        return reprojection_consensus(projections[m], points, max_error_sq, at_least);
    });
}

namespace {

// Derivatives of the error along a direction (along_u, along_v), with respect to the degrees of freedom.
template <int kDof, class T>
inline void differentiate(const Packed<T>& p, const Seen<T>& seen, const T& along_u, const T& along_v, T slope[kDof]) {
    // With respect to the ray (x, y), the point R X + t, and a rotation of R X: g . (w x R X) = w . (R X x g).
    const T bend = NumberOf<T>(2) * p.scale * p.k1 * (along_u * seen.x + along_v * seen.y);
    const T by_x = along_u * seen.stretch + bend * seen.x, by_y = along_v * seen.stretch + bend * seen.y;
    const T g0 = by_x * seen.inverse_depth, g1 = by_y * seen.inverse_depth, g2 = -(g0 * seen.x + g1 * seen.y);
    const T* X = seen.turned;
    slope[0] = X[1] * g2 - X[2] * g1;
    slope[1] = X[2] * g0 - X[0] * g2;
    slope[2] = X[0] * g1 - X[1] * g0;
    slope[3] = g0;
    slope[4] = g1;
    slope[5] = g2;
    if constexpr (kDof == kAbsoluteFocalDof) {
        const T radial = along_u * seen.x + along_v * seen.y;
        slope[6] = seen.stretch * radial;
        slope[7] = along_u;
        slope[8] = along_v;
        slope[9] = p.scale * seen.radius_sq * radial;
    }
}

// A few points in the precision of the sums: their projections, the direction of the error, the weights of the loss
// along and across it, and the weighted error.
template <class Real>
struct Block {
    static constexpr int kSize = 128;  // fits the cache and a small stack; small enough for sums in single precision
    Real turned[3][kSize], inverse_depth[kSize], x[kSize], y[kSize], radius_sq[kSize], stretch[kSize];
    Real along_u[kSize], along_v[kSize], pull[kSize], bend[kSize], slope[kSize];
    int count;
};

// Fills the block with the points starting at `first` and pads the last pack. Returns their cost, always in double
// precision as in `normal_equations`.
template <Loss kLoss, class Real>
double evaluate(const Packed<Doubles>& p, const Columns<double>& points, const double* weights, double scale, int first,
                Block<Real>& block) {
    constexpr double kBehind = 1e12;  // squared error of a point behind the camera, in units of the squared scale
    const Doubles far = broadcast(kBehind * scale * scale), zero{}, one = broadcast(1.0);
    Doubles cost{};
    block.count = points.n - first < Block<Real>::kSize ? points.n - first : Block<Real>::kSize;
    const int whole_packs = (block.count + kFloats - 1) / kFloats * kFloats;
    for (int to = 0; to < whole_packs; to += kDoubles) {
        const Seen<Doubles> seen = see(p, points, first + to);
        const Doubles weight = load(weights + first + to);
        const Doubles bounded = seen.error_sq < far ? seen.error_sq : far;  // also for NaN
        const Doubles error_sq = seen.depth > 0.0 ? bounded : far;
        Doubles derivative, curvature;
        const Doubles value = evaluate_loss<kLoss>(error_sq, scale, derivative, curvature);
        cost += weight > 0.0 ? weight * value : zero;
        // Excluded values may be infinite, and 0 times infinity is not 0.
        const Doubles near = error_sq < far ? one : zero;
        const Doubles counts = weight > 0.0 ? near : zero;
        const auto clean = [&](const Doubles& number) { return counts > 0.0 ? number : zero; };
        const Doubles length = square_root(error_sq), inverse = 1.0 / length;
        for (int i = 0; i < 3; ++i) store(block.turned[i] + to, clean(seen.turned[i]));
        store(block.inverse_depth + to, clean(seen.inverse_depth));
        store(block.x + to, clean(seen.x));
        store(block.y + to, clean(seen.y));
        store(block.radius_sq + to, clean(seen.radius_sq));
        store(block.stretch + to, clean(seen.stretch));
        store(block.along_u + to, length > 1e-150 ? clean(seen.eu) * inverse : one);
        store(block.along_v + to, length > 1e-150 ? clean(seen.ev) * inverse : zero);
        const Doubles counted = weight * counts;
        store(block.pull + to, counted * derivative * clean(length));
        store(block.bend + to, counted * curvature);
        store(block.slope + to, counted * derivative);
    }
    return sum(cost);
}

// Adds the gradient and Hessian of the block. The loss is curved along the error, but not across it.
template <int kDof, class Real>
void accumulate(const Projection& projection, const Block<Real>& block, NormalEquations& out) {
    using Pack = decltype(broadcast(Real()));
    constexpr int kLanes = sizeof(Pack) / sizeof(Real);
    const Packed<Pack> p(projection);
    Pack gradient[kDof] = {}, hessian[kDof * (kDof + 1) / 2] = {};
    for (int i = 0; i < block.count; i += kLanes) {
        Seen<Pack> seen;
        for (int k = 0; k < 3; ++k) seen.turned[k] = load(block.turned[k] + i);
        seen.inverse_depth = load(block.inverse_depth + i);
        seen.x = load(block.x + i);
        seen.y = load(block.y + i);
        seen.radius_sq = load(block.radius_sq + i);
        seen.stretch = load(block.stretch + i);
        const Pack along_u = load(block.along_u + i), along_v = load(block.along_v + i);
        const Pack pull = load(block.pull + i), bend = load(block.bend + i), slope = load(block.slope + i);
        Pack along[kDof], across[kDof];
        differentiate<kDof>(p, seen, along_u, along_v, along);
        differentiate<kDof>(p, seen, -along_v, along_u, across);
        int next = 0;
        for (int a = 0; a < kDof; ++a) {
            gradient[a] += pull * along[a];
            const Pack bent = bend * along[a], straight = slope * across[a];
            for (int b = a; b < kDof; ++b) hessian[next++] += bent * along[b] + straight * across[b];
        }
    }
    for (int a = 0; a < kDof; ++a) out.gradient[a] += sum(gradient[a]);
    for (int k = 0; k < kDof * (kDof + 1) / 2; ++k) out.hessian[k] += sum(hessian[k]);
}

template <class Real>
void accumulate_blocks(const Projection& projection, int dof, const Columns<double>& points, const double* weights,
                       Loss loss, double loss_scale, NormalEquations& out) {
    const auto fill = loss == Loss::kTruncated ? evaluate<Loss::kTruncated, Real> : evaluate<Loss::kCauchy, Real>;
    const auto add = dof == kAbsoluteDof ? accumulate<kAbsoluteDof, Real> : accumulate<kAbsoluteFocalDof, Real>;
    const Packed<Doubles> p(projection);
    Block<Real> block;
    out = {};
    for (int first = 0; first < points.n; first += Block<Real>::kSize) {
        out.cost += fill(p, points, weights, loss_scale, first, block);
        add(projection, block, out);
    }
}

}  // namespace

void reprojection_equations(const Projection& projection, int dof, const Columns<double>& points, const double* weights,
                            Loss loss, double loss_scale, Precision precision, NormalEquations& out) {
    const auto accumulate_as = precision == Precision::kSingle ? accumulate_blocks<float> : accumulate_blocks<double>;
    accumulate_as(projection, dof, points, weights, loss, loss_scale, out);
}

void reprojection_jacobian(const Projection& projection, int dof, const Columns<double>& points, double* residual,
                           double* jacobian) {
    const Packed<Doubles> p(projection);
    const Doubles one = broadcast(1.0), zero{};
    for (int i = 0; i < points.n; i += kDoubles) {
        const Seen<Doubles> seen = see(p, points, i);
        Doubles by_u[kAbsoluteFocalDof], by_v[kAbsoluteFocalDof];
        differentiate<kAbsoluteFocalDof>(p, seen, one, zero, by_u);
        differentiate<kAbsoluteFocalDof>(p, seen, zero, one, by_v);
        for (int l = 0; l < kDoubles && i + l < points.n; ++l) {
            double* const row = jacobian + 2LL * dof * (i + l);
            residual[2LL * (i + l)] = lane(seen.eu, l);
            residual[2LL * (i + l) + 1] = lane(seen.ev, l);
            for (int k = 0; k < dof; ++k) {
                row[k] = lane(by_u[k], l);
                row[dof + k] = lane(by_v[k], l);
            }
        }
    }
}

}  // namespace caransac::CARANSAC_ISA

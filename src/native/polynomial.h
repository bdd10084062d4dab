// Real roots of a polynomial by Sturm's theorem: isolate, then Newton inside the bracket.
#pragma once

#include <cmath>

#include "isa.h"

namespace caransac::CARANSAC_ISA {

// Coefficients run from the constant term up: value = c[0] + c[1] x + ... + c[N] x^N.
template <int N>
inline double evaluate(const double c[N + 1], double x) {
    double value = c[N];
    for (int i = N - 1; i >= 0; --i) value = value * x + c[i];
    return value;
}

// The chain p0 = p, p1 = p', p_{i-1} = (slope_i x + offset_i) p_i - scale_i p_{i+1} with scale_i > 0, kept as its
// quotients: evaluating it costs three operations a link. Degree drops beyond one end the chain (a multiple root).
template <int N>
class SturmChain {
  public:
    explicit SturmChain(const double p[N + 1]) {
        double upper[N + 1], lower[N + 1], remainder[N + 1];
        for (int i = 0; i <= N; ++i) upper[i] = p[i];
        for (int i = 0; i < N; ++i) lower[i] = (i + 1) * p[i + 1];
        int degree = N;  // of upper; lower has one less
        while (degree > 1 && lower[degree - 1] != 0) {
            const double slope = upper[degree] / lower[degree - 1];
            const double offset =
                (upper[degree - 1] - slope * (degree > 1 ? lower[degree - 2] : 0)) / lower[degree - 1];
            double largest = 0;
            for (int i = 0; i < degree - 1; ++i) {
                remainder[i] = offset * lower[i] + (i > 0 ? slope * lower[i - 1] : 0) - upper[i];
                largest = std::fabs(remainder[i]) > largest ? std::fabs(remainder[i]) : largest;
            }
            slope_[length_] = slope;
            offset_[length_] = offset;
            scale_[length_] = largest;
            ++length_;
            const double inverse = largest > 0 ? 1 / largest : 0;
            for (int i = 0; i < degree; ++i) upper[i] = lower[i];
            for (int i = 0; i < degree - 1; ++i) lower[i] = remainder[i] * inverse;
            --degree;
        }
        for (int i = 0; i <= degree; ++i) last_upper_[i] = upper[i];
        last_degree_ = degree;
        last_ = lower[0];
    }

    // Sign changes along the chain at x; their difference at a < b counts the distinct real roots in (a, b].
    int sign_changes(double x) const {
        double below = last_, at = last_upper_[last_degree_];
        for (int i = last_degree_ - 1; i >= 0; --i) at = at * x + last_upper_[i];
        int changes = opposite(at, below);
        for (int i = length_ - 1; i >= 0; --i) {
            const double above = (slope_[i] * x + offset_[i]) * at - scale_[i] * below;
            below = at;
            at = above;
            changes += opposite(at, below);
        }
        return changes;
    }

  private:
    static int opposite(double a, double b) { return (a < 0) != (b < 0); }
    double slope_[N], offset_[N], scale_[N], last_upper_[N + 1], last_ = 0;
    int length_ = 0, last_degree_ = N;
};

// Root of p in (lo, hi), across which p changes sign: Newton, with bisection whenever a step leaves the bracket.
template <int N>
inline double bracketed_root(const double p[N + 1], double lo, double hi, double value_lo) {
    double x = 0.5 * (lo + hi);
    for (int step = 0; step < 60; ++step) {
        double value = p[N], slope = 0;
        for (int i = N - 1; i >= 0; --i) {
            slope = slope * x + value;
            value = value * x + p[i];
        }
        if (value == 0) return x;
        if ((value < 0) == (value_lo < 0))
            lo = x;
        else
            hi = x;
        double next = x - value / slope;
        if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
        if (std::fabs(next - x) <= 1e-15 * (1 + std::fabs(x))) return next;
        x = next;
    }
    return x;
}

// Distinct real roots of p in (-1, 1], each simple root to machine precision; appends to roots, returns the new count.
template <int N>
inline int unit_interval_roots(const double p[N + 1], double* roots, int count) {
    const SturmChain<N> chain(p);
    struct Interval {
        double lo, hi;
        int changes_lo, changes_hi;
        int roots() const { return changes_lo - changes_hi; }
    };
    Interval stack[N + 1];  // disjoint intervals with a root each, so never more than N
    int depth = 0;
    const auto push = [&](const Interval& interval) {
        if (interval.roots() > 0 && depth <= N) stack[depth++] = interval;
    };
    push({-1, 1, chain.sign_changes(-1), chain.sign_changes(1)});
    constexpr double kNarrowest = 1e-9;  // closer pairs are one double root, of no use as a model
    while (depth > 0 && count < N) {
        const Interval interval = stack[--depth];
        if (interval.roots() == 1) {
            const double value_lo = evaluate<N>(p, interval.lo), value_hi = evaluate<N>(p, interval.hi);
            if ((value_lo < 0) != (value_hi < 0))
                roots[count++] = bracketed_root<N>(p, interval.lo, interval.hi, value_lo);
        } else if (interval.hi - interval.lo > kNarrowest) {
            const double middle = 0.5 * (interval.lo + interval.hi);
            const int changes = chain.sign_changes(middle);
            push({interval.lo, middle, interval.changes_lo, changes});
            push({middle, interval.hi, changes, interval.changes_hi});
        }
    }
    return count;
}

// All distinct real roots of p, in no particular order; at most N. Roots outside [-1, 1] are the inverses of those of
// the reversed polynomial, so every evaluation happens inside the unit interval and nothing overflows.
template <int N>
inline int real_roots(const double p[N + 1], double roots[N]) {
    double largest = 0;
    for (int i = 0; i <= N; ++i) {
        if (!std::isfinite(p[i])) return 0;
        largest = std::fabs(p[i]) > largest ? std::fabs(p[i]) : largest;
    }
    if (largest == 0) return 0;
    double scaled[N + 1], reversed[N + 1];
    for (int i = 0; i <= N; ++i) scaled[i] = reversed[N - i] = p[i] / largest;
    const int inner = unit_interval_roots<N>(scaled, roots, 0);
    const int all = unit_interval_roots<N>(reversed, roots, inner);
    int kept = inner;
    for (int i = inner; i < all; ++i)
        if (std::fabs(roots[i]) > 1e-12 && roots[i] != 1) roots[kept++] = 1 / roots[i];
    return kept;
}

}  // namespace caransac::CARANSAC_ISA

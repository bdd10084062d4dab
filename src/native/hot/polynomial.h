// Real roots of one polynomial by Sturm's theorem: isolate them, then use Newton inside the bracket. real_roots.h
// solves several at once, and uses this file for polynomials whose chains are nearly degenerate.
#pragma once

#include <cmath>

#include "isa.h"

namespace caransac::CARANSAC_ISA {

inline double magnitude(double x) { return x < 0 ? -x : x; }

// A polynomial of degree at most N, constant term first: c[0] + c[1] x + ... + c[degree] x^degree.
template <int N>
struct Polynomial {
    double c[N + 1] = {};
    int degree = 0;

    double operator()(double x) const {
        double value = c[degree];
        for (int i = degree - 1; i >= 0; --i) value = value * x + c[i];
        return value;
    }

    // Scales the largest coefficient to one and drops leading coefficients that are zero up to rounding. Returns false
    // for zero and NaN.
    bool normalise(double smallest) {
        double largest = 0;
        for (int i = 0; i <= degree; ++i) largest = magnitude(c[i]) > largest ? magnitude(c[i]) : largest;
        if (!(largest > smallest) || !(largest < 1e300)) return false;
        for (int i = 0; i <= degree; ++i) c[i] /= largest;
        constexpr double kNegligible = 1e-13;
        while (degree > 0 && magnitude(c[degree]) < kNegligible) --degree;
        return true;
    }
};

// The chain p, p', -remainder(p, p'), ... of a normalised polynomial.
template <int N>
class SturmChain {
  public:
    explicit SturmChain(const Polynomial<N>& p) {
        link_[0] = p;
        if (p.degree == 0) return;
        link_[1].degree = p.degree - 1;
        for (int i = 0; i < p.degree; ++i) link_[1].c[i] = (i + 1) * p.c[i + 1];
        link_[1].normalise(0);
        length_ = 2;
        while (link_[length_ - 1].degree > 0) {
            const Polynomial<N>&upper = link_[length_ - 2], &lower = link_[length_ - 1];
            Polynomial<N>& next = link_[length_];
            next = upper;
            for (int shift = upper.degree - lower.degree; shift >= 0; --shift) {
                const double factor = next.c[lower.degree + shift] / lower.c[lower.degree];
                for (int i = 0; i < lower.degree; ++i) next.c[i + shift] -= factor * lower.c[i];
            }
            next.degree = lower.degree - 1;
            for (int i = 0; i <= next.degree; ++i) next.c[i] = -next.c[i];
            if (!next.normalise(1e-14)) break;  // a common divisor: p has a multiple root
            ++length_;
        }
    }

    // Sign changes along the chain at x. Their difference at a < b is the number of distinct real roots in (a, b].
    int sign_changes(double x) const {
        int changes = 0;
        bool negative = link_[0](x) < 0;
        for (int i = 1; i < length_; ++i) {
            const bool next = link_[i](x) < 0;
            changes += next != negative;
            negative = next;
        }
        return changes;
    }

  private:
    Polynomial<N> link_[N + 1];
    int length_ = 1;
};

// Root of p in (lo, hi), where p changes sign: Newton, with bisection if a step leaves the bracket.
template <int N>
inline double bracketed_root(const Polynomial<N>& p, double lo, double hi, bool negative_at_lo) {
    double x = 0.5 * (lo + hi);
    for (int step = 0; step < 60; ++step) {
        double value = p.c[p.degree], slope = 0;
        for (int i = p.degree - 1; i >= 0; --i) {
            slope = slope * x + value;
            value = value * x + p.c[i];
        }
        if (value == 0) return x;
        if ((value < 0) == negative_at_lo)
            lo = x;
        else
            hi = x;
        double next = x - value / slope;
        if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
        if (magnitude(next - x) <= 1e-15 * (1 + magnitude(x))) return next;
        x = next;
    }
    return x;
}

// Appends the distinct real roots of p in (-edge, edge] to roots; returns the new count. The ends and splits of
// intervals are not round numbers, so that round roots do not fall on them.
constexpr double kEdge = 1.0003, kSplit = 0.4871;

template <int N>
inline int inner_roots(Polynomial<N> p, double edge, double* roots, int count) {
    if (!p.normalise(0)) return count;
    const SturmChain<N> chain(p);
    struct Interval {
        double lo, hi;
        int changes_lo, changes_hi;
        int roots() const { return changes_lo - changes_hi; }
    };
    Interval stack[N + 1];  // disjoint intervals with at least one root each, so never more than N
    int depth = 0;
    const auto push = [&](const Interval& interval) {
        if (interval.roots() > 0 && depth <= N) stack[depth++] = interval;
    };
    push({-edge, edge, chain.sign_changes(-edge), chain.sign_changes(edge)});
    constexpr double kNarrowest = 1e-9;  // closer pairs are one double root, which is useless as a model
    while (depth > 0 && count < N) {
        const Interval interval = stack[--depth];
        if (interval.roots() == 1) {
            const bool negative_at_lo = p(interval.lo) < 0;
            if (negative_at_lo != (p(interval.hi) < 0))
                roots[count++] = bracketed_root<N>(p, interval.lo, interval.hi, negative_at_lo);
        } else if (interval.hi - interval.lo > kNarrowest) {
            const double middle = interval.lo + kSplit * (interval.hi - interval.lo);
            const int changes = chain.sign_changes(middle);
            push({interval.lo, middle, interval.changes_lo, changes});
            push({middle, interval.hi, changes, interval.changes_hi});
        }
    }
    return count;
}

// All distinct real roots of the polynomial with coefficients p, constant term first, in arbitrary order; at most N.
// Roots outside [-1, 1] are the inverses of roots of the reversed polynomial, so nothing overflows. Roots beyond 1e12
// are treated as infinite.
template <int N>
inline int real_roots(const double p[N + 1], double roots[N]) {
    Polynomial<N> forward, reversed;
    forward.degree = reversed.degree = N;
    for (int i = 0; i <= N; ++i) forward.c[i] = reversed.c[N - i] = p[i];
    const int inner = inner_roots<N>(forward, kEdge, roots, 0);
    const int all = inner_roots<N>(reversed, 1 / kEdge, roots, inner);
    int kept = inner;
    for (int i = inner; i < all; ++i)
        if (magnitude(roots[i]) > 1e-12) roots[kept++] = 1 / roots[i];
    return kept;
}

}  // namespace caransac::CARANSAC_ISA

// Real roots of polynomials, one polynomial per lane: isolated by Sturm's theorem, refined by Newton's method.
#pragma once

#include "pack.h"
#include "polynomial.h"

namespace caransac::CARANSAC_ISA {

inline Doubles magnitude(const Doubles& x) { return x < 0.0 ? -x : x; }

// One if the signs of a and b differ, otherwise zero.
inline Bits sign_change(const Doubles& a, const Doubles& b) {
    Bits bits_a, bits_b;
    std::memcpy(&bits_a, &a, sizeof(a));
    std::memcpy(&bits_b, &b, sizeof(b));
    return (bits_a ^ bits_b) >> 63;
}

template <int N>
inline Doubles evaluate(const Doubles p[N + 1], const Doubles& x) {
    Doubles value = p[N];
    for (int i = N - 1; i >= 0; --i) value = value * x + p[i];
    return value;
}

// The chain p, p', -remainder(p, p'), ... of SturmChain, as the recurrence that results from its divisions:
//   link[i - 1] = (slope[i] x + offset[i]) link[i] - scale[i] link[i + 1],  link[N] = last,  link[N + 1] = 0
// Evaluating it takes 2 N products instead of one for each coefficient of each link. Number is Doubles (one polynomial
// per lane) or double (one polynomial for all lanes).
template <int N, class Number>
struct SturmRecurrence {
    Number slope[N + 1], offset[N + 1], scale[N], last;

    // Sign changes along the chain at x. Their difference at a < b is the number of distinct real roots in between.
    Bits sign_changes(const Doubles& x) const {
        Doubles lower = Doubles{} + last, link = (slope[N] * x + offset[N]) * last;
        Bits changes = sign_change(lower, link);
        for (int i = N - 1; i > 0; --i) {
            const Doubles upper = (slope[i] * x + offset[i]) * link - scale[i] * lower;
            changes += sign_change(link, upper);
            lower = link;
            link = upper;
        }
        return changes;
    }
};

// Divides the chain of p, whose largest coefficient is one. Returns a measure of the remaining precision: the smallest
// leading coefficient or remainder, relative to the values that it was computed from.
template <int N>
inline Doubles divide(const Doubles p[N + 1], SturmRecurrence<N, Doubles>& chain) {
    Doubles links[2][N + 1];
    for (int i = 0; i <= N; ++i) links[0][i] = p[i];
    for (int i = 0; i < N; ++i) links[1][i] = (i + 1.0) * p[i + 1];
    Doubles soundness = magnitude(p[N]);
    const auto limit = [&](const Doubles& size) { soundness = size > soundness ? soundness : size; };  // keeps NaN
    for (int i = 1; i < N; ++i) {
        const int degree = N - i;  // degree of the divisor; the remainder replaces the dividend
        const Doubles* lower = links[i % 2];
        Doubles *upper = links[(i + 1) % 2], largest{};
        const Doubles inverse = 1.0 / lower[degree], slope = upper[degree + 1] * inverse;
        const Doubles offset = (upper[degree] - slope * lower[degree - 1]) * inverse;
        for (int k = 0; k < degree; ++k) {
            upper[k] = offset * lower[k] - upper[k];
            if (k > 0) upper[k] += slope * lower[k - 1];
            largest = magnitude(upper[k]) > largest ? magnitude(upper[k]) : largest;
        }
        const Doubles inverse_largest = 1.0 / largest;
        for (int k = 0; k < degree; ++k) upper[k] *= inverse_largest;
        limit(magnitude(upper[degree - 1]));
        limit(largest / (1.0 + magnitude(slope) + magnitude(offset)));
        chain.slope[i] = slope;
        chain.offset[i] = offset;
        chain.scale[i] = largest;
    }
    const Doubles *upper = links[(N + 1) % 2], inverse = 1.0 / links[N % 2][0];
    chain.slope[N] = upper[1] * inverse;
    chain.offset[N] = upper[0] * inverse;
    chain.last = links[N % 2][0];
    return soundness;
}

template <int N>
inline SturmRecurrence<N, double> lane(const SturmRecurrence<N, Doubles>& chain, int l) {
    SturmRecurrence<N, double> one;
    for (int i = 1; i <= N; ++i) {
        one.slope[i] = lane(chain.slope[i], l);
        one.offset[i] = lane(chain.offset[i], l);
        if (i < N) one.scale[i] = lane(chain.scale[i], l);
    }
    one.last = lane(chain.last, l);
    return one;
}

// Intervals with one root each: up to N per lane, for its polynomial or the reversed one.
template <int N>
struct Brackets {
    Doubles lo[N] = {}, hi[N] = {}, reversed[N] = {};
    int count[kDoubles] = {};
    bool sound[kDoubles];  // false if rounding errors make the intervals uncertain

    // Adds an interval of lane l that has roots, and splits it if there are several. More than N roots are an error.
    void add(const SturmRecurrence<N, Doubles>& chain, int l, bool in_reversed, double from, double to, int roots) {
        constexpr double kNarrowest = 1e-9;  // closer pairs are one double root, which is useless as a model
        if (roots > N || count[l] == N) {
            sound[l] = false;
        } else if (roots == 1) {
            set_lane(lo[count[l]], l, from);
            set_lane(hi[count[l]], l, to);
            set_lane(reversed[count[l]++], l, in_reversed);
        } else if (to - from > kNarrowest) {
            split(chain, l, in_reversed, from, to);
        }
    }

  private:
    void split(const SturmRecurrence<N, Doubles>& chain, int l, bool in_reversed, double from, double to) {
        constexpr int kPlaces = 8;  // several packs if registers are small
        double at[kPlaces];
        unsigned long long changes[kPlaces];
        for (int k = 0; k < kPlaces; ++k) at[k] = from + k * (to - from) / (kPlaces - 1);
        const SturmRecurrence<N, double> one = lane(chain, l);
        for (int k = 0; k < kPlaces; k += kDoubles) {
            const Bits found = one.sign_changes(load(at + k));
            std::memcpy(changes + k, &found, sizeof(found));
        }
        for (int k = 1; k < kPlaces && sound[l]; ++k)
            if (changes[k - 1] != changes[k])
                add(chain, l, in_reversed, at[k - 1], at[k], (changes[k - 1] - changes[k]) & 15);
    }
};

// Adds the intervals within (-edge, edge) that contain a root of p.
template <int N>
inline void isolate(const Doubles p[N + 1], double edge, bool in_reversed, Brackets<N>& brackets) {
    constexpr int kIntervals = 13;  // most roots are alone in their interval, and zero is inside an interval
    // Fewer than one polynomial in a hundred is below; even at 1e-11 all results were right.
    constexpr double kSound = 1e-8;
    const double width = 2 * edge / kIntervals;
    SturmRecurrence<N, Doubles> chain;
    const Doubles soundness = divide<N>(p, chain);
    static_assert(4 * kIntervals <= 64 && N < 15,
                  "four bits for the roots of each interval; 15 where they are negative");
    Bits previous = chain.sign_changes(broadcast(-edge)), roots{};
    for (int k = 0; k < kIntervals; ++k) {
        const Bits next = chain.sign_changes(broadcast(-edge + (k + 1) * width));
        roots |= ((previous - next) & 15) << (4 * k);
        previous = next;
    }
    for (int l = 0; l < kDoubles; ++l) {
        brackets.sound[l] = brackets.sound[l] && lane(soundness, l) > kSound;
        unsigned long long left = lane(roots, l);
        while (left != 0 && brackets.sound[l]) {
            const int shift = lowest_bit(left) & ~3, k = shift / 4;
            brackets.add(chain, l, in_reversed, -edge + k * width, -edge + (k + 1) * width, left >> shift & 15);
            left &= ~(15ull << shift);
        }
    }
}

// Roots of p in (lo, hi), where it changes sign: Newton, with bisection if a step leaves the bracket. Each lane stops
// independently, so its root does not depend on the other lanes. `bracketed` is zero if p does not change sign.
template <int N>
inline Doubles bracketed_root(const Doubles p[N + 1], Doubles lo, Doubles hi, Bits& bracketed) {
    constexpr double kLastStep = 1e-7;  // the remaining error is its square
    const Doubles at_lo = evaluate<N>(p, lo);
    bracketed = sign_change(at_lo, evaluate<N>(p, hi));
    Bits moving = bracketed;
    Doubles x = 0.5 * (lo + hi);
    for (int step = 0; step < 60 && any(moving); ++step) {
        Doubles value = p[N], slope{};
        for (int i = N - 1; i >= 0; --i) {
            slope = slope * x + value;
            value = value * x + p[i];
        }
        const Bits beyond = sign_change(at_lo, value);
        lo = beyond != 0 ? lo : x;
        hi = beyond != 0 ? x : hi;
        const Doubles newton = x - value / slope, middle = 0.5 * (lo + hi);
        Doubles next = newton > lo ? newton : middle;
        next = newton < hi ? next : middle;
        next = moving != 0 ? next : x;
        moving = magnitude(next - x) > kLastStep ? moving : Bits{};
        x = next;
    }
    return x;
}

// All distinct real roots of the polynomials with coefficients p, constant term first, in arbitrary order. Roots
// outside [-1, 1] are the inverses of roots of the reversed polynomial, so nothing overflows. Roots beyond 1e12 are
// treated as infinite.
//   roots, count:  lane l has the roots[0 .. count[l] - 1]
// Returns the largest count.
template <int N>
inline int real_roots(const Doubles p[N + 1], Doubles roots[N], int count[kDoubles]) {
    Doubles forward[N + 1], reversed[N + 1], largest{};
    for (int i = 0; i <= N; ++i) largest = magnitude(p[i]) > largest ? magnitude(p[i]) : largest;
    const Doubles inverse = 1.0 / largest;
    for (int i = 0; i <= N; ++i) forward[i] = reversed[N - i] = p[i] * inverse;
    Brackets<N> brackets;
    for (int l = 0; l < kDoubles; ++l) brackets.sound[l] = true;
    isolate<N>(forward, kEdge, false, brackets);
    isolate<N>(reversed, 1 / kEdge, true, brackets);

    int most = 0;
    for (int l = 0; l < kDoubles; ++l) most = brackets.count[l] > most ? brackets.count[l] : most;
    for (int r = 0; r < N; ++r) roots[r] = Doubles{};
    for (int r = 0; r < most; ++r) {
        Doubles chart[N + 1];
        for (int i = 0; i <= N; ++i) chart[i] = brackets.reversed[r] != 0.0 ? reversed[i] : forward[i];
        Bits bracketed;
        const Doubles x = bracketed_root<N>(chart, brackets.lo[r], brackets.hi[r], bracketed);
        roots[r] = brackets.reversed[r] != 0.0 ? 1.0 / x : x;
        for (int l = 0; l < kDoubles; ++l)
            if (r < brackets.count[l] && lane(bracketed, l) == 0) brackets.sound[l] = false;
    }
    for (int l = 0; l < kDoubles; ++l) {
        count[l] = brackets.count[l];
        if (brackets.sound[l]) continue;
        double single[N + 1], found[N];
        for (int i = 0; i <= N; ++i) single[i] = lane(p[i], l);
        count[l] = real_roots<N>(single, found);
        for (int r = 0; r < count[l]; ++r) set_lane(roots[r], l, found[r]);
        most = count[l] > most ? count[l] : most;
    }
    return most;
}

}  // namespace caransac::CARANSAC_ISA

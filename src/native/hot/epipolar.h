// The epipolar constraint x2^T M x1 = 0 for one correspondence, M an essential or fundamental matrix.
#pragma once

#include "isa.h"

namespace caransac::CARANSAC_ISA {

// First-order geometry of the constraint at (u1, v1) <-> (u2, v2). T is a number or a pack of numbers.
template <class T>
struct EpipolarTerms {
    T a0, a1;    // normal of the epipolar line M x1 in image 2
    T b0, b1;    // normal of the epipolar line M^T x2 in image 1
    T c;         // x2^T M x1
    T gradient;  // squared norm of the gradient of c with respect to the four coordinates
    T residual_sq() const { return c * c / gradient; }  // squared Sampson distance
};

// m: the matrix, row by row.
template <class T>
inline EpipolarTerms<T> epipolar_terms(const T m[9], const T& u1, const T& v1, const T& u2, const T& v2) {
    EpipolarTerms<T> terms;
    terms.a0 = m[0] * u1 + m[1] * v1 + m[2];
    terms.a1 = m[3] * u1 + m[4] * v1 + m[5];
    terms.b0 = m[0] * u2 + m[3] * v2 + m[6];
    terms.b1 = m[1] * u2 + m[4] * v2 + m[7];
    terms.c = u2 * terms.a0 + v2 * terms.a1 + (m[6] * u1 + m[7] * v1 + m[8]);
    terms.gradient = terms.a0 * terms.a0 + terms.a1 * terms.a1 + terms.b0 * terms.b0 + terms.b1 * terms.b1;
    return terms;
}

// Derivatives of the Sampson distance c / sqrt(gradient) with respect to the entries of M, row by row, times
// sqrt(gradient): x2 x1^T - ratio (a x1^T + x2 b^T) with ratio = c / gradient. The third entries of a and b are zero.
// The last of the nine derivatives is one.
template <class T>
inline void differentiate(const T m[9], const T& u1, const T& v1, const T& u2, const T& v2, const T& ratio,
                          T slope[8]) {
    const auto terms = epipolar_terms<T>(m, u1, v1, u2, v2);
    const T a0 = ratio * terms.a0, a1 = ratio * terms.a1;
    const T y0 = u1 - ratio * terms.b0, y1 = v1 - ratio * terms.b1;
    slope[0] = u2 * y0 - a0 * u1;
    slope[1] = u2 * y1 - a0 * v1;
    slope[2] = u2 - a0;
    slope[3] = v2 * y0 - a1 * u1;
    slope[4] = v2 * y1 - a1 * v1;
    slope[5] = v2 - a1;
    slope[6] = y0;
    slope[7] = y1;
}

// The smaller of the two depths, up to a positive factor, of the least-squares triangulation of l1 R x1 + t = l2 x2. It
// is positive if the point lies in front of both cameras. r: the rotation, row by row.
template <class T>
inline T nearer_depth(const T r[9], const T t[3], const T& u1, const T& v1, const T& u2, const T& v2) {
    const T a[3] = {r[0] * u1 + r[1] * v1 + r[2], r[3] * u1 + r[4] * v1 + r[5], r[6] * u1 + r[7] * v1 + r[8]};  // R x1
    const T aa = a[0] * a[0] + a[1] * a[1] + a[2] * a[2], xx = u2 * u2 + v2 * v2 + 1;
    const T ax = a[0] * u2 + a[1] * v2 + a[2];
    const T at = a[0] * t[0] + a[1] * t[1] + a[2] * t[2], xt = u2 * t[0] + v2 * t[1] + t[2];
    const T depth1 = ax * xt - xx * at, depth2 = aa * xt - ax * at;
    return depth1 < depth2 ? depth1 : depth2;
}

}  // namespace caransac::CARANSAC_ISA

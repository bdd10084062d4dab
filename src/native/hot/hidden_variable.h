// The constraints on an essential matrix in the null space of its five points, eliminated to polynomials in one
// unknown; one sample per lane.
#pragma once

#include "real_roots.h"

namespace caransac::CARANSAC_ISA {

// Coefficients of polynomials in x, y, z, with E = x X + y Y + z Z + W in the basis of the null space:
//   Linear     x, y, z, 1
//   Quadratic  xx, xy, yy, xz, yz, zz, x, y, z, 1
//   Cubic      x3, y3, xxy, xyy, xxz, xx, yyz, yy, xyz, xy | xzz, xz, x | yzz, yz, y | zzz, zz, z, 1   (Nistér's order)
// The first ten cubic monomials are the ones eliminated.
using Linear = Doubles[4];
using Quadratic = Doubles[10];
using Cubic = Doubles[20];
constexpr int kConstraints = 10, kMonomials = 20;

// sum += a b
inline void add_product(const Linear& a, const Linear& b, Quadratic& sum) {
    sum[0] += a[0] * b[0];
    sum[1] += a[0] * b[1] + a[1] * b[0];
    sum[2] += a[1] * b[1];
    sum[3] += a[0] * b[2] + a[2] * b[0];
    sum[4] += a[1] * b[2] + a[2] * b[1];
    sum[5] += a[2] * b[2];
    sum[6] += a[0] * b[3] + a[3] * b[0];
    sum[7] += a[1] * b[3] + a[3] * b[1];
    sum[8] += a[2] * b[3] + a[3] * b[2];
    sum[9] += a[3] * b[3];
}

// sum += q b
inline void add_product(const Quadratic& q, const Linear& b, Cubic& sum) {
    sum[0] += q[0] * b[0];
    sum[1] += q[2] * b[1];
    sum[2] += q[0] * b[1] + q[1] * b[0];
    sum[3] += q[1] * b[1] + q[2] * b[0];
    sum[4] += q[0] * b[2] + q[3] * b[0];
    sum[5] += q[0] * b[3] + q[6] * b[0];
    sum[6] += q[2] * b[2] + q[4] * b[1];
    sum[7] += q[2] * b[3] + q[7] * b[1];
    sum[8] += q[1] * b[2] + q[3] * b[1] + q[4] * b[0];
    sum[9] += q[1] * b[3] + q[6] * b[1] + q[7] * b[0];
    sum[10] += q[3] * b[2] + q[5] * b[0];
    sum[11] += q[3] * b[3] + q[6] * b[2] + q[8] * b[0];
    sum[12] += q[6] * b[3] + q[9] * b[0];
    sum[13] += q[4] * b[2] + q[5] * b[1];
    sum[14] += q[4] * b[3] + q[7] * b[2] + q[8] * b[1];
    sum[15] += q[7] * b[3] + q[9] * b[1];
    sum[16] += q[5] * b[2];
    sum[17] += q[5] * b[3] + q[8] * b[2];
    sum[18] += q[8] * b[3] + q[9] * b[2];
    sum[19] += q[9] * b[3];
}

// The ten constraints det E = 0 and (E E^T - trace(E E^T) / 2) E = 0.
inline void essential_constraints(const Doubles basis[4][9], Cubic constraints[kConstraints]) {
    Linear e[3][3];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int b = 0; b < 4; ++b) e[i][j][b] = basis[b][3 * i + j];

    Quadratic gram[3][3] = {};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j <= i; ++j)
            for (int k = 0; k < 3; ++k) add_product(e[i][k], e[j][k], gram[i][j]);
    for (int c = 0; c < 10; ++c) {
        const Doubles half_trace = 0.5 * (gram[0][0][c] + gram[1][1][c] + gram[2][2][c]);
        for (int i = 0; i < 3; ++i) gram[i][i][c] -= half_trace;
    }
    for (int row = 0; row < kConstraints; ++row)
        for (int c = 0; c < kMonomials; ++c) constraints[row][c] = Doubles{};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k) add_product(k <= i ? gram[i][k] : gram[k][i], e[k][j], constraints[3 * i + j]);

    for (int i = 0; i < 3; ++i) {  // det E by the cofactors of the last row
        Quadratic minor = {}, subtracted = {};
        const int p = (i + 1) % 3, q = (i + 2) % 3;
        add_product(e[0][p], e[1][q], minor);
        add_product(e[0][q], e[1][p], subtracted);
        for (int c = 0; c < 10; ++c) minor[c] -= subtracted[c];
        add_product(minor, e[2][i], constraints[9]);
    }
}

// Householder QR of columns K..9, applied to all 20 columns. K is a template argument, so that the compiler keeps the
// reflector in registers.
template <int K = 0>
inline void triangularise(Cubic rows[kConstraints]) {
    if constexpr (K < kConstraints - 1) {
        Doubles v[kConstraints], norm_sq{};
        for (int i = K; i < kConstraints; ++i) v[i] = rows[i][K];
        for (int i = K; i < kConstraints; ++i) norm_sq += v[i] * v[i];
        const Doubles norm = square_root(norm_sq), alpha = v[K] > 0.0 ? -norm : norm;
        v[K] -= alpha;
        const Doubles inverse = -1.0 / (alpha * v[K]);
        rows[K][K] = alpha;
        for (int c = K + 1; c < kMonomials; ++c) {
            Doubles dot{};
            for (int i = K; i < kConstraints; ++i) dot += v[i] * rows[i][c];
            dot *= inverse;
            for (int i = K; i < kConstraints; ++i) rows[i][c] -= dot * v[i];
        }
        triangularise<K + 1>(rows);
    }
}

// Solves rows 4..9 for their monomials xxz, xx, yyz, yy, xyz, xy in terms of the last ten columns.
inline void back_substitute(Cubic rows[kConstraints]) {
    for (int r = kConstraints - 1; r >= 4; --r) {
        const Doubles inverse = 1.0 / rows[r][r];
        for (int c = 10; c < kMonomials; ++c) {
            Doubles value = rows[r][c];
            for (int k = r + 1; k < kConstraints; ++k) value -= rows[r][k] * rows[k][c];
            rows[r][c] = value * inverse;
        }
    }
}

// One row of Nistér's matrix B(z): polynomials in z, constant term first, that multiply x, y and 1.
struct HiddenRow {
    Doubles x[4], y[4], one[5];
};

// upper - z lower; upper is the row of (monomial z) and lower that of the monomial.
inline HiddenRow hidden_row(const Cubic& upper, const Cubic& lower) {
    HiddenRow row;
    for (int group = 0; group < 2; ++group) {
        const Doubles *u = upper + 10 + 3 * group, *l = lower + 10 + 3 * group;
        Doubles* to = group == 0 ? row.x : row.y;
        to[0] = u[2];
        to[1] = u[1] - l[2];
        to[2] = u[0] - l[1];
        to[3] = -l[0];
    }
    const Doubles *u = upper + 16, *l = lower + 16;
    row.one[0] = u[3];
    row.one[1] = u[2] - l[3];
    row.one[2] = u[1] - l[2];
    row.one[3] = u[0] - l[1];
    row.one[4] = -l[0];
    return row;
}

// det B(z), degree ten, constant term first.
inline void hidden_determinant(const HiddenRow rows[3], Doubles det[11]) {
    for (int i = 0; i < 11; ++i) det[i] = Doubles{};
    for (int r = 0; r < 3; ++r) {
        const HiddenRow &p = rows[(r + 1) % 3], &q = rows[(r + 2) % 3];
        Doubles minor[7] = {};
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) minor[i + j] += p.x[i] * q.y[j] - p.y[i] * q.x[j];
        for (int i = 0; i < 7; ++i)
            for (int j = 0; j < 5; ++j) det[i + j] += minor[i] * rows[r].one[j];
    }
}

// Nistér's 3 x 3 matrix B(z) and its determinant: E = x X + y Y + z Z + W is essential if B(z) (x, y, 1)^T = 0.
struct HiddenVariable {
    HiddenRow rows[3];
    Doubles determinant[11];

    // basis: X, Y, Z, W
    explicit HiddenVariable(const Doubles basis[4][9]) {
        Cubic constraints[kConstraints];
        essential_constraints(basis, constraints);
        triangularise(constraints);
        back_substitute(constraints);
        for (int r = 0; r < 3; ++r) rows[r] = hidden_row(constraints[4 + 2 * r], constraints[5 + 2 * r]);
        hidden_determinant(rows, determinant);
    }

    // x and y for a root z, from the best conditioned pair of rows; not finite if no pair determines them.
    void solve(const Doubles& z, Doubles& x, Doubles& y) const {
        Doubles a[3], b[3], c[3];
        for (int r = 0; r < 3; ++r) {
            a[r] = evaluate<3>(rows[r].x, z);
            b[r] = evaluate<3>(rows[r].y, z);
            c[r] = evaluate<4>(rows[r].one, z);
        }
        Doubles denominator{}, numerator_x{}, numerator_y{};
        for (int r = 0; r < 3; ++r) {
            const int p = (r + 1) % 3, q = (r + 2) % 3;
            const Doubles minor = a[p] * b[q] - a[q] * b[p];
            const auto better = magnitude(minor) > magnitude(denominator);
            denominator = better ? minor : denominator;
            numerator_x = better ? b[p] * c[q] - b[q] * c[p] : numerator_x;
            numerator_y = better ? a[q] * c[p] - a[p] * c[q] : numerator_y;
        }
        const Doubles inverse = 1.0 / denominator;
        x = numerator_x * inverse;
        y = numerator_y * inverse;
    }
};

}  // namespace caransac::CARANSAC_ISA

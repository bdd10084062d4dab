#include "five_point.h"

#include "null_space.h"
#include "real_roots.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Polynomials in x, y, z where E = x X + y Y + z Z + W over the null space's basis, by their coefficients:
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

// Householder QR of the left 10 x 10 block, carried through all 20 columns.
inline void triangularise(Cubic rows[kConstraints]) {
    for (int k = 0; k < kConstraints - 1; ++k) {
        Doubles norm_sq{};
        for (int i = k; i < kConstraints; ++i) norm_sq += rows[i][k] * rows[i][k];
        const Doubles norm = square_root(norm_sq), head = rows[k][k];
        const Doubles alpha = head > 0.0 ? -norm : norm;
        Doubles v[kConstraints];
        v[k] = head - alpha;
        for (int i = k + 1; i < kConstraints; ++i) v[i] = rows[i][k];
        const Doubles inverse = -1.0 / (alpha * v[k]);
        rows[k][k] = alpha;
        for (int c = k + 1; c < kMonomials; ++c) {
            Doubles dot{};
            for (int i = k; i < kConstraints; ++i) dot += v[i] * rows[i][c];
            dot *= inverse;
            for (int i = k; i < kConstraints; ++i) rows[i][c] -= dot * v[i];
        }
    }
}

// Rows 4..9 solved for their monomials xxz, xx, yyz, yy, xyz, xy in terms of the last ten columns.
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

// upper - z lower, where upper is the row of (monomial z) and lower that of the monomial.
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
inline void determinant(const HiddenRow rows[3], Doubles det[11]) {
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

// x and y from B(z) (x, y, 1)^T = 0 by the best conditioned pair of rows; not finite where no pair determines them.
inline void solve_hidden(const HiddenRow rows[3], const Doubles& z, Doubles& x, Doubles& y) {
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

// Solutions collected until they fill a pack: which sample, its basis, and the coordinates of E in that basis.
struct Candidates {
    Doubles basis[4][9], coordinates[4];
    int sample[kDoubles];
    int count = 0;
};

// A candidate whose last step was not shorter than this is no solution.
constexpr double kConvergedSq = 1e-14;

// One Gauss-Newton step of the ten constraints along three directions, no longer than kLongest; returns the squared
// length it wanted to have. Lanes whose last step was short enough rest, so that no lane depends on its neighbours.
inline Doubles constraint_step(const Doubles direction[3][9], const Doubles& last_step_sq, Doubles e[9]) {
    // Residuals: A E with A = E E^T - trace / 2, and det E.
    Doubles a[9], residual[10], cofactor[9];
    for (int i = 0; i < 9; i += 3)
        for (int j = 0; j < 9; j += 3) a[i + j / 3] = e[i] * e[j] + e[i + 1] * e[j + 1] + e[i + 2] * e[j + 2];
    const Doubles half_trace = 0.5 * (a[0] + a[4] + a[8]);
    for (int i = 0; i < 3; ++i) a[4 * i] -= half_trace;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            residual[3 * i + j] = a[3 * i] * e[j] + a[3 * i + 1] * e[3 + j] + a[3 * i + 2] * e[6 + j];
            const int i1 = 3 * ((i + 1) % 3), i2 = 3 * ((i + 2) % 3), j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            cofactor[3 * i + j] = e[i1 + j1] * e[i2 + j2] - e[i1 + j2] * e[i2 + j1];
        }
    residual[9] = e[0] * cofactor[0] + e[1] * cofactor[1] + e[2] * cofactor[2];

    Doubles jacobian[3][10];
    for (int k = 0; k < 3; ++k) {
        const Doubles* d = direction[k];
        Doubles da[9] = {}, inner{};
        for (int i = 0; i < 9; ++i) inner += e[i] * d[i];
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                for (int l = 0; l < 3; ++l) da[3 * i + j] += d[3 * i + l] * e[3 * j + l] + e[3 * i + l] * d[3 * j + l];
        for (int i = 0; i < 3; ++i) da[4 * i] -= inner;
        for (int r = 0; r < 10; ++r) jacobian[k][r] = Doubles{};
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                jacobian[k][9] += cofactor[3 * i + j] * d[3 * i + j];
                for (int l = 0; l < 3; ++l)
                    jacobian[k][3 * i + j] += da[3 * i + l] * e[3 * l + j] + a[3 * i + l] * d[3 * l + j];
            }
    }

    Doubles h[3][3], g[3];
    for (int k = 0; k < 3; ++k) {
        g[k] = Doubles{};
        for (int r = 0; r < 10; ++r) g[k] += jacobian[k][r] * residual[r];
        for (int l = 0; l <= k; ++l) {
            h[k][l] = Doubles{};
            for (int r = 0; r < 10; ++r) h[k][l] += jacobian[k][r] * jacobian[l][r];
            h[l][k] = h[k][l];
        }
    }
    const Doubles m00 = h[1][1] * h[2][2] - h[1][2] * h[1][2], m01 = h[0][2] * h[1][2] - h[0][1] * h[2][2];
    const Doubles m02 = h[0][1] * h[1][2] - h[0][2] * h[1][1], m11 = h[0][0] * h[2][2] - h[0][2] * h[0][2];
    const Doubles m12 = h[0][1] * h[0][2] - h[0][0] * h[1][2], m22 = h[0][0] * h[1][1] - h[0][1] * h[0][1];
    const Doubles inverse_det = 1.0 / (h[0][0] * m00 + h[0][1] * m01 + h[0][2] * m02);
    Doubles step[3] = {(m00 * g[0] + m01 * g[1] + m02 * g[2]) * inverse_det,
                       (m01 * g[0] + m11 * g[1] + m12 * g[2]) * inverse_det,
                       (m02 * g[0] + m12 * g[1] + m22 * g[2]) * inverse_det};
    const Doubles length_sq = step[0] * step[0] + step[1] * step[1] + step[2] * step[2];
    constexpr double kLongest = 0.03;
    const Doubles shrink = length_sq > kLongest * kLongest ? kLongest / square_root(length_sq) : broadcast(1.0);
    const auto resting = last_step_sq < kConvergedSq;
    for (int k = 0; k < 3; ++k) step[k] = resting ? Doubles{} : step[k] * shrink;
    for (int i = 0; i < 9; ++i)
        e[i] -= step[0] * direction[0][i] + step[1] * direction[1][i] + step[2] * direction[2][i];
    return resting ? last_step_sq : length_sq;
}

// E from its coordinates, improved on the unit sphere of the null space: what the elimination and the polynomial of
// degree ten lose in precision (one sample in a thousand ends up beyond 1e-6) comes back, nearly always in one step.
// Returns the squared length of the last step.
inline Doubles polish(const Candidates& candidates, Doubles e[9]) {
    Doubles norm_sq{}, c[4];
    for (int b = 0; b < 4; ++b) norm_sq += candidates.coordinates[b] * candidates.coordinates[b];
    const Doubles inverse_norm = 1.0 / square_root(norm_sq);
    for (int b = 0; b < 4; ++b) c[b] = candidates.coordinates[b] * inverse_norm;
    for (int i = 0; i < 9; ++i) {
        e[i] = Doubles{};
        for (int b = 0; b < 4; ++b) e[i] += c[b] * candidates.basis[b][i];
    }
    // Tangent directions: the reflection that maps the last axis to c or -c maps the others to the complement of c.
    const Doubles sign = c[3] > 0.0 ? broadcast(1.0) : broadcast(-1.0);
    const Doubles inverse_head = 1.0 / (1.0 + sign * c[3]);
    Doubles direction[3][9];
    for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 9; ++i)
            direction[k][i] = candidates.basis[k][i] - c[k] * inverse_head * (e[i] + sign * candidates.basis[3][i]);

    Doubles last_step_sq = broadcast(1.0);
    for (int steps = 0; steps < 6; ++steps) {
        last_step_sq = constraint_step(direction, last_step_sq, e);
        bool converged = true;
        for (int l = 0; l < kDoubles; ++l) converged = converged && lane(last_step_sq, l) < kConvergedSq;
        if (converged) break;
    }
    norm_sq = Doubles{};
    for (int i = 0; i < 9; ++i) norm_sq += e[i] * e[i];
    const Doubles scale = square_root(2.0 / norm_sq);
    for (int i = 0; i < 9; ++i) e[i] *= scale;
    return last_step_sq;
}

// Writes the candidates that turn out to be solutions, and empties the collection.
inline int flush(Candidates& candidates, double* models, int* sample_index, int count) {
    for (int l = candidates.count; l < kDoubles; ++l)  // unused lanes repeat the first
        for (int b = 0; b < 4; ++b) {
            set_lane(candidates.coordinates[b], l, lane(candidates.coordinates[b], 0));
            for (int i = 0; i < 9; ++i) set_lane(candidates.basis[b][i], l, lane(candidates.basis[b][i], 0));
        }
    Doubles e[9];
    const Doubles last_step_sq = polish(candidates, e);
    for (int l = 0; l < candidates.count; ++l) {
        if (!(lane(last_step_sq, l) < kConvergedSq)) continue;  // also drops NaN
        for (int i = 0; i < 9; ++i) models[9 * count + i] = lane(e[i], l);
        sample_index[count++] = candidates.sample[l];
    }
    candidates.count = 0;
    return count;
}

}  // namespace

int five_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index) {
    int count = 0;
    Candidates candidates;
    for (int first = 0; first < num_samples; first += kDoubles) {
        Doubles basis[4][9], independence;
        null_space<5>(x1, x2, first, num_samples, basis, independence);
        Cubic constraints[kConstraints];
        essential_constraints(basis, constraints);
        triangularise(constraints);
        back_substitute(constraints);
        const HiddenRow rows[3] = {hidden_row(constraints[4], constraints[5]),
                                   hidden_row(constraints[6], constraints[7]),
                                   hidden_row(constraints[8], constraints[9])};
        Doubles det[11];
        determinant(rows, det);

        Doubles x[10], y[10], z[10];
        int num_roots[kDoubles];
        const int most = real_roots<10>(det, z, num_roots);
        for (int r = 0; r < most; ++r) solve_hidden(rows, z[r], x[r], y[r]);

        for (int l = 0; l < kDoubles && first + l < num_samples; ++l) {
            if (!(lane(independence, l) > kMinIndependence)) continue;
            for (int r = 0; r < num_roots[l]; ++r) {
                const double coordinates[4] = {lane(x[r], l), lane(y[r], l), lane(z[r], l), 1};
                const int slot = candidates.count++;
                candidates.sample[slot] = first + l;
                for (int b = 0; b < 4; ++b) {
                    set_lane(candidates.coordinates[b], slot, coordinates[b]);
                    for (int i = 0; i < 9; ++i) set_lane(candidates.basis[b][i], slot, lane(basis[b][i], l));
                }
                if (candidates.count == kDoubles) count = flush(candidates, models, sample_index, count);
            }
        }
    }
    return candidates.count > 0 ? flush(candidates, models, sample_index, count) : count;
}

}  // namespace caransac::CARANSAC_ISA

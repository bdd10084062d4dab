#include "five_point.h"

#include "essential_pose.h"
#include "hidden_variable.h"
#include "null_space.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Solutions collected until they fill a pack: the sample, its basis, and the coordinates of E in that basis.
struct Candidates {
    Doubles basis[4][9], coordinates[4];
    int sample[kDoubles];
    int count = 0;
};

// A candidate whose last step was longer than this is not a solution.
constexpr double kConvergedSq = 1e-14;

// One Gauss-Newton step for the ten constraints along three directions, limited to kLongest. Returns the squared length
// before limiting. Lanes whose last step was short enough stay unchanged, so that no lane depends on its neighbours.
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

// E from its coordinates, refined on the unit sphere of the null space. The elimination and the polynomial of degree
// ten lose precision: one sample in a thousand has an error above 1e-6. One step nearly always restores it. Returns the
// squared length of the last step.
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

// Output of a solver: kEntries numbers for each solution, and the sample that it comes from.
template <int kEntries>
struct Solutions {
    double* to;
    int* sample_index;
    int count = 0;

    // Appends the candidates whose entry in `valid` is positive.
    void append(const Candidates& candidates, const Doubles entries[kEntries], const Doubles& valid) {
        for (int l = 0; l < candidates.count; ++l) {
            if (!(lane(valid, l) > 0)) continue;
            for (int i = 0; i < kEntries; ++i) to[kEntries * count + i] = lane(entries[i], l);
            sample_index[count++] = candidates.sample[l];
        }
    }
};

// Passes the candidates to `take(candidates, e, valid)` and empties the collection.
template <class Take>
inline void flush(Candidates& candidates, Take take) {
    for (int l = candidates.count; l < kDoubles; ++l) {  // unused lanes repeat the first
        candidates.sample[l] = candidates.sample[0];
        for (int b = 0; b < 4; ++b) {
            set_lane(candidates.coordinates[b], l, lane(candidates.coordinates[b], 0));
            for (int i = 0; i < 9; ++i) set_lane(candidates.basis[b][i], l, lane(candidates.basis[b][i], 0));
        }
    }
    Doubles e[9];
    const Doubles last_step_sq = polish(candidates, e);
    take(candidates, e, last_step_sq < kConvergedSq ? broadcast(1.0) : broadcast(-1.0));  // NaN is not less
    candidates.count = 0;
}

// Passes all essential matrices of all samples to `take`.
template <class Take>
inline void solve(const double* x1, const double* x2, int num_samples, Take take) {
    Candidates candidates;
    for (int first = 0; first < num_samples; first += kDoubles) {
        Doubles basis[4][9], independence, x[10], y[10], z[10];
        null_space<5>(x1, x2, first, num_samples, basis, independence);
        const HiddenVariable hidden(basis);
        int num_roots[kDoubles];
        const int most = real_roots<10>(hidden.determinant, z, num_roots);
        for (int r = 0; r < most; ++r) hidden.solve(z[r], x[r], y[r]);

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
                if (candidates.count == kDoubles) flush(candidates, take);
            }
        }
    }
    if (candidates.count > 0) flush(candidates, take);
}

}  // namespace

int five_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index) {
    Solutions<9> solutions{models, sample_index};
    solve(x1, x2, num_samples, [&](const Candidates& candidates, const Doubles e[9], const Doubles& valid) {
        solutions.append(candidates, e, valid);
    });
    return solutions.count;
}

int five_point_poses(const double* x1, const double* x2, int num_samples, double* poses, int* sample_index) {
    Solutions<12> solutions{poses, sample_index};
    solve(x1, x2, num_samples, [&](const Candidates& candidates, const Doubles e[9], const Doubles& valid) {
        Doubles points[5][4], pose[12];
        for (int i = 0; i < 5; ++i)
            for (int l = 0; l < kDoubles; ++l) {
                const int at = (5 * candidates.sample[l] + i) * 2;
                set_lane(points[i][0], l, x1[at]);
                set_lane(points[i][1], l, x1[at + 1]);
                set_lane(points[i][2], l, x2[at]);
                set_lane(points[i][3], l, x2[at + 1]);
            }
        const Doubles depth = pose_in_front<5>(e, points, pose);
        solutions.append(candidates, pose, valid > 0.0 ? depth : valid);
    });
    return solutions.count;
}

}  // namespace caransac::CARANSAC_ISA

// Null space of the linear epipolar constraints of a minimal sample, one sample per lane.
#pragma once

#include "pack.h"

namespace caransac::CARANSAC_ISA {

// Threshold on the sine of the smallest angle between one constraint and the span of the previous ones. Samples below
// it have nearly dependent constraints and no isolated solutions: repeated points, or points collinear in both images.
constexpr double kMinIndependence = 1e-9;

// A fixed rotation of the basis of the null space. With reflections only, the axes of special motions would stay in
// place: for rectified stereo, the true E would have no component along the last basis vector, which is a root at
// infinity of the solvers' polynomials. (The 4 x 4 matrix multiplies quaternions by (2 + 4i + 10j + k) / 11; the 2 x 2
// matrix is its complex counterpart.)
template <int N>
inline double generic_rotation(int row, int column) {
    static_assert(N == 2 || N == 4, "null spaces of seven and five constraints");
    if constexpr (N == 2) {
        constexpr double kMatrix[2][2] = {{0.8, -0.6}, {0.6, 0.8}};
        return kMatrix[row][column];
    } else {
        constexpr double kMatrix[4][4] = {{2, -4, -10, -1}, {4, 2, -1, 10}, {10, 1, 2, -4}, {1, -10, 4, 2}};
        return kMatrix[row][column] / 11;
    }
}

// Householder QR of the 9 x R matrix whose columns are the constraints; the last 9 - R columns of Q span the null
// space. Unlike Gaussian elimination it needs no pivoting, so all lanes take the same path.
//   x1, x2:  num_samples x R x 2 coordinates; lane l reads sample first + l (the last one again beyond the end)
//   basis:   9 - R orthonormal matrices, row by row
//   independence: per lane, to be compared with kMinIndependence
template <int R>
inline void null_space(const double* x1, const double* x2, int first, int num_samples, Doubles basis[9 - R][9],
                       Doubles& independence) {
    Doubles columns[R][9];
    for (int r = 0; r < R; ++r) {
        Doubles u1{}, v1{}, u2{}, v2{};
        for (int l = 0; l < kDoubles; ++l) {
            const int sample = first + l < num_samples ? first + l : num_samples - 1;
            const int at = (sample * R + r) * 2;
            set_lane(u1, l, x1[at]);
            set_lane(v1, l, x1[at + 1]);
            set_lane(u2, l, x2[at]);
            set_lane(v2, l, x2[at + 1]);
        }
        const Doubles scale = 1.0 / square_root((u1 * u1 + v1 * v1 + 1.0) * (u2 * u2 + v2 * v2 + 1.0));
        const Doubles left[3] = {u2 * scale, v2 * scale, scale}, right[3] = {u1, v1, broadcast(1.0)};
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) columns[r][3 * i + j] = left[i] * right[j];
    }

    Doubles inverse[R];  // reflector k is I - v v^T inverse[k], v stored in columns[k][k..8]
    independence = broadcast(1.0);
    for (int k = 0; k < R; ++k) {
        Doubles norm_sq{};
        for (int i = k; i < 9; ++i) norm_sq += columns[k][i] * columns[k][i];
        const Doubles norm = square_root(norm_sq);
        independence = norm < independence ? norm : independence;
        const Doubles head = columns[k][k];
        const Doubles alpha = head > 0.0 ? -norm : norm;  // the sign that avoids cancellation
        columns[k][k] = head - alpha;
        inverse[k] = -1.0 / (alpha * columns[k][k]);
        for (int r = k + 1; r < R; ++r) {
            Doubles dot{};
            for (int i = k; i < 9; ++i) dot += columns[k][i] * columns[r][i];
            dot *= inverse[k];
            for (int i = k; i < 9; ++i) columns[r][i] -= dot * columns[k][i];
        }
    }
    for (int b = 0; b < 9 - R; ++b) {
        for (int i = 0; i < 9; ++i) basis[b][i] = broadcast(i < R ? 0.0 : generic_rotation<9 - R>(i - R, b));
        for (int k = R - 1; k >= 0; --k) {
            Doubles dot{};
            for (int i = k; i < 9; ++i) dot += columns[k][i] * basis[b][i];
            dot *= inverse[k];
            for (int i = k; i < 9; ++i) basis[b][i] -= dot * columns[k][i];
        }
    }
}

}  // namespace caransac::CARANSAC_ISA

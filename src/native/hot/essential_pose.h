// Poses from essential matrices, one per lane.
#pragma once

#include "epipolar.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// The rotation nearest to r, which is nearly a rotation: two steps of Newton's iteration for the polar decomposition,
// each of which squares the error. Returns the squared deviation of r^T r from the identity.
inline Doubles orthonormalise(Doubles r[9]) {
    Doubles deviation_sq{};
    for (int step = 0; step < 2; ++step) {
        Doubles half[9];  // (r^T r - I) / 2
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                half[3 * i + j] =
                    0.5 * (r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j] - (i == j ? 1.0 : 0.0));
        if (step == 0)
            for (int i = 0; i < 9; ++i) deviation_sq += 4.0 * half[i] * half[i];
        for (int i = 0; i < 9; i += 3) {
            const Doubles row[3] = {r[i], r[i + 1], r[i + 2]};
            for (int j = 0; j < 3; ++j) r[i + j] -= row[0] * half[j] + row[1] * half[3 + j] + row[2] * half[6 + j];
        }
    }
    return deviation_sq;
}

// The pose of an essential matrix of Frobenius norm sqrt(2) that puts all points in front of both cameras; at most one
// of the four candidates does. B. K. P. Horn, "Recovering baseline and orientation from essential matrix", 1990: the
// columns of E span the plane orthogonal to t, and |t|^2 R = cofactor(E) - [t]x E. This needs no singular value
// decomposition.
//   points:  u1, v1, u2, v2 in normalised coordinates
//   pose:    the rows of [R | t], |t| = 1
// Returns the depth of the nearest point up to a positive factor. It is positive if and only if there is such a pose.
template <int kPoints>
inline Doubles pose_in_front(const Doubles e[9], const Doubles points[kPoints][4], Doubles pose[12]) {
    Doubles cofactor[9], largest{}, t[3] = {}, r[9] = {};
    for (int j = 0; j < 3; ++j) {
        const int p = (j + 1) % 3, q = (j + 2) % 3;
        Doubles cross[3];
        for (int i = 0; i < 3; ++i) {
            const int m = 3 * ((i + 1) % 3), n = 3 * ((i + 2) % 3);
            cofactor[3 * i + j] = cross[i] = e[m + p] * e[n + q] - e[n + p] * e[m + q];
        }
        const Doubles norm_sq = cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2];
        const auto larger = norm_sq > largest;
        largest = larger ? norm_sq : largest;
        for (int i = 0; i < 3; ++i) t[i] = larger ? cross[i] : t[i];
    }
    const Doubles inverse_norm = 1.0 / square_root(largest);
    for (int i = 0; i < 3; ++i) t[i] *= inverse_norm;

    // cofactor(E) = t t^T R for either sign of E; that sign selects one of the two rotations. Only one candidate has
    // the first point in front of both cameras; the other points then confirm or reject it.
    const Doubles backward[3] = {-t[0], -t[1], -t[2]};
    Doubles nearest = broadcast(-1.0), direction = broadcast(1.0);
    for (double sign = -1; sign < 2; sign += 2) {
        Doubles rotation[9];
        for (int i = 0; i < 3; ++i) {
            const int p = (i + 1) % 3, q = (i + 2) % 3;
            for (int j = 0; j < 3; ++j)
                rotation[3 * i + j] = cofactor[3 * i + j] - sign * (t[p] * e[3 * q + j] - t[q] * e[3 * p + j]);
        }
        for (double way = -1; way < 2; way += 2) {
            const Doubles depth = nearer_depth<Doubles>(rotation, way > 0 ? t : backward, points[0][0], points[0][1],
                                                        points[0][2], points[0][3]);
            const auto in_front = depth > 0.0;
            nearest = in_front ? depth : nearest;
            direction = in_front ? broadcast(way) : direction;
            for (int i = 0; i < 9; ++i) r[i] = in_front ? rotation[i] : r[i];
        }
    }
    for (int i = 0; i < 3; ++i) t[i] *= direction;
    for (int k = 1; k < kPoints; ++k) {
        const Doubles depth = nearer_depth<Doubles>(r, t, points[k][0], points[k][1], points[k][2], points[k][3]);
        nearest = depth > nearest ? nearest : depth;
    }
    const Doubles deviation_sq = orthonormalise(r);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) pose[4 * i + j] = r[3 * i + j];
        pose[4 * i + 3] = t[i];
    }
    // Only an essential matrix (two equal singular values, one zero) gives a rotation here.
    constexpr double kTolerance = 1e-3;
    return deviation_sq < kTolerance * kTolerance ? nearest : broadcast(-1.0);
}

}  // namespace caransac::CARANSAC_ISA

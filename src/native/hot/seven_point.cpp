#include "seven_point.h"

#include "null_space.h"
#include "real_roots.h"

namespace caransac::CARANSAC_ISA {
namespace {

// det(z A + B), constant term first: every term of the expansion is a product of three linear polynomials in z.
inline void determinant(const Doubles a[9], const Doubles b[9], Doubles det[4]) {
    for (int i = 0; i < 4; ++i) det[i] = Doubles{};
    for (int k = 0; k < 3; ++k) {
        const int p = (k + 1) % 3, q = (k + 2) % 3;
        const Doubles minor0 = b[3 + p] * b[6 + q] - b[3 + q] * b[6 + p];
        const Doubles minor1 = a[3 + p] * b[6 + q] + b[3 + p] * a[6 + q] - a[3 + q] * b[6 + p] - b[3 + q] * a[6 + p];
        const Doubles minor2 = a[3 + p] * a[6 + q] - a[3 + q] * a[6 + p];
        det[0] += b[k] * minor0;
        det[1] += b[k] * minor1 + a[k] * minor0;
        det[2] += b[k] * minor2 + a[k] * minor1;
        det[3] += a[k] * minor2;
    }
}

}  // namespace

int seven_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index) {
    int count = 0;
    for (int first = 0; first < num_samples; first += kDoubles) {
        Doubles basis[2][9], independence, det[4];
        null_space<7>(x1, x2, first, num_samples, basis, independence);
        determinant(basis[0], basis[1], det);
        Doubles roots[3], scale[3];
        int num_roots[kDoubles];
        const int most = real_roots<3>(det, roots, num_roots);
        for (int r = 0; r < most; ++r)
            scale[r] = 1.0 / square_root(roots[r] * roots[r] + 1.0);  // the basis is orthonormal
        for (int l = 0; l < kDoubles && first + l < num_samples; ++l) {
            if (!(lane(independence, l) > kMinIndependence)) continue;
            for (int r = 0; r < num_roots[l]; ++r) {
                const double a = lane(scale[r] * roots[r], l), b = lane(scale[r], l);
                for (int i = 0; i < 9; ++i) models[9 * count + i] = a * lane(basis[0][i], l) + b * lane(basis[1][i], l);
                sample_index[count++] = first + l;
            }
        }
    }
    return count;
}

}  // namespace caransac::CARANSAC_ISA

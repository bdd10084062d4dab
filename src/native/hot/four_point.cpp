#include "four_point.h"

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Four points of an image, one sample per lane.
struct Quad {
    Doubles x[4], y[4];
    Quad(const double* points, int first, int num_samples) {
        for (int k = 0; k < 4; ++k)
            for (int l = 0; l < kDoubles; ++l) {
                const int sample = first + l < num_samples ? first + l : num_samples - 1;
                set_lane(x[k], l, points[8 * sample + 2 * k]);
                set_lane(y[k], l, points[8 * sample + 2 * k + 1]);
            }
    }
    // Twice the signed area of a triangle: the determinant of its homogeneous points.
    Doubles area(int a, int b, int c) const { return (x[b] - x[a]) * (y[c] - y[a]) - (x[c] - x[a]) * (y[b] - y[a]); }
};

// The triangle of the first three points, and the triangles of two of them with the fourth.
struct Areas {
    Doubles all, with_fourth[3];
    explicit Areas(const Quad& q)
        : all(q.area(0, 1, 2)), with_fourth{q.area(3, 1, 2), q.area(0, 3, 2), q.area(0, 1, 3)} {}
};

}  // namespace

int four_point(const double* x1, const double* x2, int num_samples, double* models, int* sample_index) {
    constexpr double kSmallestArea = 1e-6;  // of triangles, in coordinates of the order of one
    int count = 0;
    for (int first = 0; first < num_samples; first += kDoubles) {
        const Quad p(x1, first, num_samples), q(x2, first, num_samples);
        const Areas area1(p), area2(q);
        // H = sum_i ratio_i q_i (p_j x p_k)^T maps p_i to a multiple of q_i, and the fourth point to its match.
        Doubles h[9] = {}, norm_sq{};
        for (int i = 0; i < 3; ++i) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            const Doubles ratio = area2.with_fourth[i] / area1.with_fourth[i];
            const Doubles cross[3] = {p.y[j] - p.y[k], p.x[k] - p.x[j], p.x[j] * p.y[k] - p.x[k] * p.y[j]};
            for (int c = 0; c < 3; ++c) {
                const Doubles scaled = ratio * cross[c];
                h[c] += scaled * q.x[i];
                h[3 + c] += scaled * q.y[i];
                h[6 + c] += scaled;
            }
        }
        for (int i = 0; i < 9; ++i) norm_sq += h[i] * h[i];
        const Doubles inverse_norm = 1.0 / square_root(norm_sq);
        for (int l = 0; l < kDoubles && first + l < num_samples; ++l) {
            const double all1 = lane(area1.all, l), all2 = lane(area2.all, l);
            bool good = all1 * all2 > 0 && all1 * all1 > kSmallestArea * kSmallestArea &&
                        all2 * all2 > kSmallestArea * kSmallestArea;
            for (int i = 0; i < 3; ++i) {
                const double one = lane(area1.with_fourth[i], l), other = lane(area2.with_fourth[i], l);
                good = good && one * other > 0 && one * one > kSmallestArea * kSmallestArea &&
                       other * other > kSmallestArea * kSmallestArea;
            }
            const double scale = all2 > 0 ? lane(inverse_norm, l) : -lane(inverse_norm, l);
            if (!good || !(scale * scale > 0) || scale * scale > 1e300) continue;  // also drops NaN
            for (int i = 0; i < 9; ++i) models[9 * count + i] = scale * lane(h[i], l);
            sample_index[count++] = first + l;
        }
    }
    return count;
}

}  // namespace caransac::CARANSAC_ISA

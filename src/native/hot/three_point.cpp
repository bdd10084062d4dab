#include "three_point.h"

#include <math.h>

namespace caransac::CARANSAC_ISA {
namespace {

constexpr double kSmallestSine = 1e-5;   // minimum sine of the angle between two sides of a triangle
constexpr double kSmallestAngle = 1e-7;  // minimum angle between two rays; 1 - cosine is half of its square
constexpr double kLargestResidual = 1e-6;
constexpr int kNewtonSteps = 30, kPolishingSteps = 3;

inline double dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

inline void cross3(const double a[3], const double b[3], double out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

// A conic, as the symmetric matrix [[xx, xy, x], [xy, yy, y], [x, y, one]].
struct Conic {
    double xx, xy, x, yy, y, one;
    // The matrix of cofactors.
    Conic adjugate() const {
        return {yy * one - y * y, x * y - xy * one, xy * y - x * yy,
                xx * one - x * x, xy * x - xx * y,  xx * yy - xy * xy};
    }
    double determinant() const { return xx * (yy * one - y * y) - xy * (xy * one - x * y) + x * (xy * y - x * yy); }
    // Trace of the product of two conics.
    double product(const Conic& o) const {
        return xx * o.xx + yy * o.yy + one * o.one + 2 * (xy * o.xy + x * o.x + y * o.y);
    }
    Conic plus(double factor, const Conic& o) const {
        return {xx + factor * o.xx, xy + factor * o.xy, x + factor * o.x,
                yy + factor * o.yy, y + factor * o.y,   one + factor * o.one};
    }
};

// A real root of s^3 + a s^2 + b s + c: the isolated one if all three are real.
double lone_root(double a, double b, double c) {
    // s = t - a / 3 with t^3 + p t + q = 0. Its isolated root has the sign of -q, and |t| is the largest root of f(t) =
    // t^3 + p t - |q|. f is convex and increasing above that root, so Newton's method converges to it from above.
    const double third = a / 3, p = b - a * third, q = third * (2 * third * third - b) + c, size = ::fabs(q);
    double t = ::cbrt(size) + (p < 0 ? ::sqrt(-p) : 0.0);
    for (int step = 0; step < kNewtonSteps; ++step) {
        const double slope = 3 * t * t + p;
        if (!(slope > 0)) break;
        const double change = (t * (t * t + p) - size) / slope;
        t -= change;
        if (!(change > 1e-15 * t)) break;
    }
    double root = (q > 0 ? -t : t) - third;
    // Shifting back loses digits if the root is small.
    for (int step = 0; step < 2; ++step) {
        const double slope = (3 * root + 2 * a) * root + b;
        if (slope == 0) break;
        root -= (((root + a) * root + b) * root + c) / slope;
    }
    return root;
}

// The two lines of a degenerate conic; false if they are not real.
bool split(const Conic& c, double line1[3], double line2[3]) {
    const Conic adjugate = c.adjugate();
    const double columns[3][3] = {{-adjugate.xx, -adjugate.xy, -adjugate.x},
                                  {-adjugate.xy, -adjugate.yy, -adjugate.y},
                                  {-adjugate.x, -adjugate.y, -adjugate.one}};
    int largest = 0;
    for (int i = 1; i < 3; ++i)
        if (columns[i][i] > columns[largest][largest]) largest = i;
    const double square = columns[largest][largest];
    double p[3] = {0, 0, 0};  // intersection of the lines
    if (square > 0) {
        const double inverse = 1 / ::sqrt(square);
        for (int i = 0; i < 3; ++i) p[i] = columns[largest][i] * inverse;
    } else if (!(square > -1e-12 * (c.xx * c.xx + c.yy * c.yy + c.one * c.one))) {
        return false;
    }
    const double m[3][3] = {
        {c.xx, c.xy - p[2], c.x + p[1]}, {c.xy + p[2], c.yy, c.y - p[0]}, {c.x - p[1], c.y + p[0], c.one}};
    int row = 0, column = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (::fabs(m[i][j]) > ::fabs(m[row][column])) row = i, column = j;
    for (int i = 0; i < 3; ++i) {
        line1[i] = m[row][i];
        line2[i] = m[i][column];
    }
    return true;
}

// Intersections of a line and a conic: up to two points.
int intersect(const double line[3], const Conic& c, double x[2], double y[2]) {
    // s is the coordinate along the axis that the line crosses less steeply; the other coordinate is slope s + offset.
    const bool by_y = ::fabs(line[0]) > ::fabs(line[1]);
    const double lead = by_y ? line[0] : line[1], other = by_y ? line[1] : line[0];
    if (lead == 0) return 0;
    const double slope = -other / lead, offset = -line[2] / lead;
    const double ss = by_y ? c.yy : c.xx, rr = by_y ? c.xx : c.yy, s1 = by_y ? c.y : c.x, r1 = by_y ? c.x : c.y;
    const double k2 = ss + slope * (rr * slope + 2 * c.xy);
    const double half = offset * (rr * slope + c.xy) + s1 + r1 * slope;
    const double k0 = offset * (rr * offset + 2 * r1) + c.one;
    double square = half * half - k2 * k0;
    const double size = half * half + ::fabs(k2 * k0);
    if (!(square > -1e-12 * size)) return 0;
    square = square > 0 ? square : 0;
    const double far = -(half + (half > 0 ? ::sqrt(square) : -::sqrt(square)));  // avoids cancellation
    double roots[2];
    int count = 0;
    if (k2 != 0) roots[count++] = far / k2;
    if (far != 0 && square > 0) roots[count++] = k0 / far;
    for (int i = 0; i < count; ++i) {
        const double dependent = slope * roots[i] + offset;
        x[i] = by_y ? dependent : roots[i];
        y[i] = by_y ? roots[i] : dependent;
    }
    return count;
}

// The cosines of the angles between the rays and the squared distances of the points, for the pairs 12, 13 and 23.
struct Triangle {
    double c12, c13, c23, s12, s13, s23;

    // Newton's method for the depths. Returns false if the result does not match the distances.
    bool polish(double d[3]) const {
        double residual = 0;
        for (int step = 0; step <= kPolishingSteps; ++step) {
            const double r12 = d[0] * d[0] + d[1] * d[1] - 2 * c12 * d[0] * d[1] - s12;
            const double r13 = d[0] * d[0] + d[2] * d[2] - 2 * c13 * d[0] * d[2] - s13;
            const double r23 = d[1] * d[1] + d[2] * d[2] - 2 * c23 * d[1] * d[2] - s23;
            residual = ::fabs(r12) + ::fabs(r13) + ::fabs(r23);
            if (residual < 1e-15 || step == kPolishingSteps) break;
            // Half the derivatives: [[a, b, 0], [e, 0, f], [0, g, h]].
            const double a = d[0] - c12 * d[1], b = d[1] - c12 * d[0], e = d[0] - c13 * d[2], f = d[2] - c13 * d[0],
                         g = d[1] - c23 * d[2], h = d[2] - c23 * d[1];
            const double determinant = -a * f * g - b * e * h;
            if (determinant == 0) break;
            const double factor = 0.5 / determinant;
            d[0] -= factor * (-f * g * r12 - b * h * r13 + b * f * r23);
            d[1] -= factor * (-e * h * r12 + a * h * r13 - a * f * r23);
            d[2] -= factor * (e * g * r12 - a * g * r13 - b * e * r23);
        }
        return residual < kLargestResidual && d[0] > 0 && d[1] > 0 && d[2] > 0;
    }
};

// The pose that moves corners 0, 1 and 2 of a triangle X to those of the congruent triangle Y. frame: the sides of X
// from corner 0 and their cross product, whose squared length is `normal_sq`.
void align(const double X[9], const double frame[3][3], double normal_sq, const double Y[9], double pose[12]) {
    double moved[3][3], dual[3][3];
    for (int i = 0; i < 3; ++i) {
        moved[0][i] = Y[3 + i] - Y[i];
        moved[1][i] = Y[6 + i] - Y[i];
    }
    cross3(moved[0], moved[1], moved[2]);
    cross3(frame[1], frame[2], dual[0]);
    cross3(frame[2], frame[0], dual[1]);
    for (int i = 0; i < 3; ++i) dual[2][i] = frame[2][i];
    for (int i = 0; i < 3; ++i) {
        double* row = pose + 4 * i;
        for (int j = 0; j < 3; ++j)
            row[j] = (moved[0][i] * dual[0][j] + moved[1][i] * dual[1][j] + moved[2][i] * dual[2][j]) / normal_sq;
        row[3] = 0;
        for (int corner = 0; corner < 3; ++corner) row[3] += (Y[3 * corner + i] - dot3(row, X + 3 * corner)) / 3;
    }
}

int solve(const double x[6], const double X[9], double* poses) {
    double ray[3][3], frame[3][3], side[3];
    for (int k = 0; k < 3; ++k) {
        const double u = x[2 * k], v = x[2 * k + 1], inverse = 1 / ::sqrt(u * u + v * v + 1);
        ray[k][0] = u * inverse, ray[k][1] = v * inverse, ray[k][2] = inverse;
        frame[0][k] = X[3 + k] - X[k];
        frame[1][k] = X[6 + k] - X[k];
        side[k] = X[6 + k] - X[3 + k];
    }
    cross3(frame[0], frame[1], frame[2]);
    const double s12 = dot3(frame[0], frame[0]), s13 = dot3(frame[1], frame[1]), s23 = dot3(side, side);
    const double normal_sq = dot3(frame[2], frame[2]);
    const double longest = s12 > s13 ? (s12 > s23 ? s12 : s23) : (s13 > s23 ? s13 : s23);
    const double c12 = dot3(ray[0], ray[1]), c13 = dot3(ray[0], ray[2]), c23 = dot3(ray[1], ray[2]);
    const double nearest = c12 > c13 ? (c12 > c23 ? c12 : c23) : (c13 > c23 ? c13 : c23);
    const bool good = longest > 1e-75 && longest < 1e75 && normal_sq > kSmallestSine * kSmallestSine * s12 * s13 &&
                      1 - nearest > 0.5 * kSmallestAngle * kSmallestAngle;
    if (!good) return 0;  // also NaN
    const Triangle t{c12, c13, c23, s12 / longest, s13 / longest, s23 / longest};

    // The law of cosines for each pair of rays, divided by the squared third depth: with x = d1 / d3 and y = d2 / d3,
    // (x^2 + y^2 - 2 c12 x y) / s12 = (x^2 + 1 - 2 c13 x) / s13 = (y^2 + 1 - 2 c23 y) / s23.
    Conic a{t.s23, -t.s23 * t.c12, 0, t.s23 - t.s12, t.s12 * t.c23, -t.s12};
    Conic b{t.s23, 0, -t.s23 * t.c13, -t.s13, t.s13 * t.c23, t.s23 - t.s13};
    double lead = b.determinant(), last = a.determinant();
    if (::fabs(lead) < ::fabs(last)) {
        const Conic first = a;
        a = b;
        b = first;
        const double determinant = lead;
        lead = last;
        last = determinant;
    }
    const double inverse = lead != 0 ? 1 / lead : 0;
    const double root = lone_root(b.adjugate().product(a) * inverse, a.adjugate().product(b) * inverse, last * inverse);
    double lines[2][3];
    if (!split(a.plus(root, b), lines[0], lines[1])) return 0;
    const Conic& other = ::fabs(root) < 1 ? b : a;
    int count = 0;
    for (const auto& line : lines) {
        double ratio1[2], ratio2[2];
        const int found = intersect(line, other, ratio1, ratio2);
        for (int i = 0; i < found; ++i) {
            const double p = ratio1[i], q = ratio2[i];
            if (!(p > 0 && q > 0)) continue;
            const double sum = 2 * (p * p + q * q + 1 - t.c12 * p * q - t.c13 * p - t.c23 * q);
            const double third = ::sqrt((t.s12 + t.s13 + t.s23) / sum);
            double depth[3] = {p * third, q * third, third};
            if (!t.polish(depth)) continue;
            double Y[9];
            const double unit = ::sqrt(longest);
            for (int k = 0; k < 9; ++k) Y[k] = unit * depth[k / 3] * ray[k / 3][k % 3];
            align(X, frame, normal_sq, Y, poses + 12 * count++);
        }
    }
    return count;
}

}  // namespace

int three_point(const double* x, const double* X, int num_samples, double* poses, int* sample_index) {
    int count = 0;
    for (int s = 0; s < num_samples; ++s) {
        const int found = solve(x + 6 * s, X + 9 * s, poses + 12 * count);
        for (int i = 0; i < found; ++i) sample_index[count++] = s;
    }
    return count;
}

}  // namespace caransac::CARANSAC_ISA

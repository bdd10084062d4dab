#include "lens_equations.h"

#include "epipolar.h"
#include "loss.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

constexpr double kSmallest = 1e-30;  // squared gradient; a point on both epipoles constrains nothing

// The radii of rays that a lens maps to given radii.
inline Doubles unbend(const LensCurve& lens, const Doubles& seen) {
    constexpr int kMostSteps = 30;
    const Doubles inside = seen < lens.end ? seen : broadcast(lens.end);
    Doubles ray = inside;
    // Newton's method, which approaches the only solution from one side.
    for (int step = 0; step < kMostSteps; ++step) {
        const Doubles bent = lens.k1 * ray * ray;
        const Doubles change = (ray * (1.0 + bent) - inside) / (1.0 + 3.0 * bent);
        ray -= change;
        const Doubles size = change < 0.0 ? -change : change;
        if (!any(Bits(size > 1e-8 * ray))) break;  // convergence is quadratic
    }
    return seen < lens.end ? ray : lens.last + (seen - lens.end) / lens.slope;
}

// A ray in one image, and its derivatives with respect to the lens and to its point in the image.
struct Ray {
    Doubles du, dv;                     // direction from the image centre
    Doubles u, v;                       // the ray
    Doubles by_k1;                      // derivative by k1, along the direction
    Doubles along, across;              // derivatives by the distance in the image, along the direction and across it
    Doubles along_by_k1, across_by_k1;  // derivatives of these by k1
};

inline Ray see(const LensCurve& lens, const Doubles& seen, const Doubles& du, const Doubles& dv) {
    const Doubles radius = unbend(lens, seen), inside = radius < lens.last ? radius : broadcast(lens.last);
    const Doubles slope = radius < lens.last ? 1.0 + 3.0 * lens.k1 * radius * radius : broadcast(lens.slope);
    const Doubles along = 1.0 / slope, by_k1 = -inside * inside * inside * along;
    const Doubles one = broadcast(1.0), inverse = 1.0 / (seen > 0.0 ? seen : one);
    const Doubles across = seen > 0.0 ? radius * inverse : one;
    const Doubles along_by_k1 = -(3.0 * radius * radius + 6.0 * lens.k1 * radius * by_k1) * along * along;
    return {du, dv, radius * du, radius * dv, by_k1, along, across, along_by_k1, by_k1 * inverse};
}

// Adds the part of one image to the squared gradient of c with respect to the points. Returns half of the derivative of
// this part with respect to k1.
inline Doubles bend(const Ray& ray, const Doubles& a, const Doubles& b, Doubles& gradient) {
    const Doubles along = a * ray.du + b * ray.dv, across = a * ray.dv - b * ray.du;
    const Doubles along_sq = along * along * ray.along, across_sq = across * across * ray.across;
    gradient += along_sq * ray.along + across_sq * ray.across;
    return along_sq * ray.along_by_k1 + across_sq * ray.across_by_k1;
}

}  // namespace

void lens_equations(const double model[9], const LensCurve lenses[2], const SeenColumns& points, const double* weights,
                    double loss_scale, LensEquations& out) {
    Doubles m[9], cost{}, gradient[kLensNumbers] = {}, hessian[kLensNumbers * (kLensNumbers + 1) / 2] = {};
    const Doubles one = broadcast(1.0);
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        Ray ray[2];
        for (int k = 0; k < 2; ++k)
            ray[k] = see(lenses[k], load(points.radius[k] + i), load(points.u[k] + i), load(points.v[k] + i));
        const Doubles &u1 = ray[0].u, &v1 = ray[0].v, &u2 = ray[1].u, &v2 = ray[1].v;
        const auto terms = epipolar_terms<Doubles>(m, u1, v1, u2, v2);
        Doubles by_point{};
        const Doubles change[2] = {bend(ray[0], terms.b0, terms.b1, by_point),
                                   bend(ray[1], terms.a0, terms.a1, by_point)};
        const auto tells = (terms.gradient > kSmallest) & (by_point > kSmallest);
        const Doubles inverse = tells ? 1.0 / (tells ? by_point : one) : Doubles{};
        const Doubles ratio = terms.c / (tells ? terms.gradient : one);

        // The distance is c / sqrt(by_point). These are its derivatives with respect to the entries and k1, times that
        // root.
        Doubles slope[kLensNumbers];
        differentiate<Doubles>(m, u1, v1, u2, v2, ratio, slope);
        slope[8] = one;
        const Doubles a0 = ratio * terms.a0, a1 = ratio * terms.a1, b0 = ratio * terms.b0, b1 = ratio * terms.b1;
        const Doubles by_ray[2][2] = {{terms.b0 - a0 * m[0] - a1 * m[3], terms.b1 - a0 * m[1] - a1 * m[4]},
                                      {terms.a0 - b0 * m[0] - b1 * m[1], terms.a1 - b0 * m[3] - b1 * m[4]}};
        for (int k = 0; k < 2; ++k)
            slope[9 + k] =
                ray[k].by_k1 * (by_ray[k][0] * ray[k].du + by_ray[k][1] * ray[k].dv) - terms.c * inverse * change[k];

        const Doubles weight = load(weights + i);
        Doubles derivative, curvature;
        cost += weight * evaluate_loss<Loss::kCauchy>(terms.c * terms.c * inverse, loss_scale, derivative, curvature);
        const Doubles weighted = weight * derivative * inverse * terms.c;
        curvature *= weight * inverse;
        int next = 0;
        for (int p = 0; p < kLensNumbers; ++p) {
            gradient[p] += weighted * slope[p];
            const Doubles curved = curvature * slope[p];
            for (int q = p; q < kLensNumbers; ++q) hessian[next++] += curved * slope[q];
        }
    }
    out.cost = sum(cost);
    for (int p = 0; p < kLensNumbers; ++p) out.gradient[p] = sum(gradient[p]);
    for (int k = 0; k < kLensNumbers * (kLensNumbers + 1) / 2; ++k) out.hessian[k] = sum(hessian[k]);
}

}  // namespace caransac::CARANSAC_ISA

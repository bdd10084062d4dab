#include "lens.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace caransac {

Lens::Lens(double k1) {
    constexpr double kShareOfFold = 0.9, kInfinity = std::numeric_limits<double>::infinity();
    curve_ = {k1, kInfinity, kInfinity, 1};
    if (k1 >= 0) return;
    curve_.last = kShareOfFold / std::sqrt(-3 * k1);
    curve_.slope = 1 - kShareOfFold * kShareOfFold;
    curve_.end = bend(curve_.last);
}

double Lens::bend(double radius) const {
    const double inside = std::min(radius, curve_.last);
    return inside * (1 + curve_.k1 * inside * inside) +
           (radius > curve_.last ? curve_.slope * (radius - curve_.last) : 0);
}

double Lens::unbend(double radius) const {
    constexpr int kMostSteps = 30;
    if (radius > curve_.end) return curve_.last + (radius - curve_.end) / curve_.slope;
    // Newton's method, which approaches the only solution from one side.
    double ray = radius;
    for (int step = 0; step < kMostSteps; ++step) {
        const double bent = curve_.k1 * ray * ray, change = (ray * (1 + bent) - radius) / (1 + 3 * bent);
        ray -= change;
        if (std::abs(change) <= 1e-8 * ray) break;  // convergence is quadratic
    }
    return ray;
}

Correspondences change_lenses(const Correspondences& rays, const Lenses& from, const Lenses& to) {
    Correspondences changed(rays);
    for (int image = 0; image < 2; ++image) {
        const Lens before(from.k1[image]), after(to.k1[image]);
        changed.map_image(image, [&](double& u, double& v) {
            const double radius = std::sqrt(u * u + v * v);
            if (!(radius > 0)) return;
            const double factor = after.unbend(before.bend(radius)) / radius;
            u *= factor;
            v *= factor;
        });
    }
    return changed;
}

}  // namespace caransac

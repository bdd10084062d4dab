#include "lens.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace caransac {

Lens::Lens(double k1) : k1_(k1), last_(std::numeric_limits<double>::infinity()), slope_(1) {
    constexpr double kShareOfFold = 0.9;
    if (k1 >= 0) return;
    last_ = kShareOfFold / std::sqrt(-3 * k1);
    slope_ = 1 - kShareOfFold * kShareOfFold;
}

double Lens::bend(double radius) const {
    const double inside = std::min(radius, last_);
    return inside * (1 + k1_ * inside * inside) + (radius > last_ ? slope_ * (radius - last_) : 0);
}

double Lens::slope(double radius) const { return radius > last_ ? slope_ : 1 + 3 * k1_ * radius * radius; }

double Lens::by_k1(double radius) const {
    const double inside = std::min(radius, last_);
    return -inside * inside * inside / slope(radius);
}

double Lens::unbend(double radius) const {
    constexpr int kMostSteps = 30;
    if (k1_ < 0) {
        const double end = bend(last_);
        if (radius > end) return last_ + (radius - end) / slope_;
    }
    // Newton's method, which approaches the only solution from one side.
    double ray = radius;
    for (int step = 0; step < kMostSteps; ++step) {
        const double change = (ray * (1 + k1_ * ray * ray) - radius) / (1 + 3 * k1_ * ray * ray);
        ray -= change;
        if (std::abs(change) <= 1e-8 * ray) break;  // the next one would be its square
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

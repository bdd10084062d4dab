// Lenses that bend straight lines: the radial distortion x' = x (1 + k1 |x|^2), COLMAP's SIMPLE_RADIAL.
#pragma once

#include "correspondences.h"

namespace caransac {

// One lens. Points beyond 0.9 of the radius where the polynomial folds back are bent on along its tangent there, so
// that every point has its place.
class Lens {
  public:
    explicit Lens(double k1);
    double k1() const { return k1_; }
    double bend(double radius) const;    // distance from the middle of a ray in the image
    double unbend(double radius) const;  // the inverse
    double slope(double radius) const;   // derivative of bend by the radius of a ray
    double by_k1(double radius) const;   // and of unbend by k1, at the radius of the ray

  private:
    double k1_, last_, slope_;  // where the polynomial ends, and its slope there
};

// The lenses of both images.
struct Lenses {
    double k1[2] = {0, 0};
};

// Rays seen through some lenses as rays seen through others: the same pixels.
Correspondences change_lenses(const Correspondences& rays, const Lenses& from, const Lenses& to);

}  // namespace caransac

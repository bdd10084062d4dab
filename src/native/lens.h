// Lenses with radial distortion: x' = x (1 + k1 |x|^2), COLMAP's SIMPLE_RADIAL.
#pragma once

#include "correspondences.h"
#include "hot/lens_equations.h"

namespace caransac {

// One lens. Beyond 0.9 of the radius at which the polynomial folds back, the tangent at that radius is used instead, so
// that every point has an image.
class Lens {
  public:
    explicit Lens(double k1);
    const LensCurve& curve() const { return curve_; }
    double bend(double radius) const;    // distance of a ray from the centre in the image
    double unbend(double radius) const;  // the inverse

  private:
    LensCurve curve_;
};

// The lenses of both images.
struct Lenses {
    double k1[2] = {0, 0};
};

// Converts the rays of pixels from one pair of lenses to another.
Correspondences change_lenses(const Correspondences& rays, const Lenses& from, const Lenses& to);

}  // namespace caransac

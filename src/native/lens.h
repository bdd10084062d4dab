// Lenses that bend straight lines: the radial distortion x' = x (1 + k1 |x|^2), COLMAP's SIMPLE_RADIAL.
#pragma once

#include "correspondences.h"
#include "hot/lens_equations.h"

namespace caransac {

// One lens. Points beyond 0.9 of the radius where the polynomial folds back are bent on along its tangent there, so
// that every point has its place.
class Lens {
  public:
    explicit Lens(double k1);
    const LensCurve& curve() const { return curve_; }
    double bend(double radius) const;    // distance from the middle of a ray in the image
    double unbend(double radius) const;  // the inverse

  private:
    LensCurve curve_;
};

// The lenses of both images.
struct Lenses {
    double k1[2] = {0, 0};
};

// Rays seen through some lenses as rays seen through others: the same pixels.
Correspondences change_lenses(const Correspondences& rays, const Lenses& from, const Lenses& to);

}  // namespace caransac

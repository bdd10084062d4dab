// Relative poses of omnidirectional cameras: rays on the unit sphere, and their angles to epipolar planes.
#pragma once

#include "manifolds.h"

namespace caransac {

// A pose whose points are rays in Lambert's azimuthal equal-area projection. The radius is twice the sine of half the
// angle to the axis, so that the whole sphere fits into a disc of radius two.
class RayManifold {
  public:
    static constexpr int kDof = PoseManifold::kDof;
    using Delta = PoseManifold::Delta;
    explicit RayManifold(const Pose& pose) : pose_(pose) {}
    const Pose& pose() const { return pose_.pose(); }
    Matrix3 matrix() const { return pose_.matrix(); }
    PoseManifold::Jacobian jacobian() const { return pose_.jacobian(); }
    RayManifold retract(const Delta& delta) const { return RayManifold(pose_.retract(delta).pose()); }

  private:
    PoseManifold pose_;
};

// Squared angles (in radians, to first order) between n points and a pose.
void ray_residuals_sq(const RayManifold& model, const Columns<double>& points, double* out);

// MSAC scores of the points; 0 behind a camera, that is, if the rays meet at a negative depth.
void ray_scores(const RayManifold& model, const Columns<double>& points, double max_error_sq, float* out);

// Total consensus; points behind a camera are included.
double ray_consensus(const RayManifold& model, const Columns<float>& points, double max_error_sq);

// Signed angles (n) and their derivatives (n x dof).
void ray_jacobian(const RayManifold& model, const Columns<double>& points, double* residuals, double* jacobian);

}  // namespace caransac

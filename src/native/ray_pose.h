// Relative poses of cameras that see all around: rays on the unit sphere, and angles between them and epipolar planes.
#pragma once

#include "manifolds.h"

namespace caransac {

// A pose whose points are rays as Lambert's azimuthal projection has them: at twice the sine of half the angle to the
// axis, of equal area, so that all of a sphere fits into a disc of radius two.
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

// Squared angles (radians, to first order) of n points to a pose.
void ray_residuals_sq(const RayManifold& model, const Columns<double>& points, double* out);

// MSAC scores of them, 0 for a point behind a camera: where a ray meets that of the other image backwards.
void ray_scores(const RayManifold& model, const Columns<double>& points, double max_error_sq, float* out);

// Total consensus, whatever is behind.
double ray_consensus(const RayManifold& model, const Columns<float>& points, double max_error_sq);

// Signed angles (n) and their derivatives (n x dof).
void ray_jacobian(const RayManifold& model, const Columns<double>& points, double* residuals, double* jacobian);

}  // namespace caransac

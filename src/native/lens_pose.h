// Relative poses of cameras whose focal lengths, principal points and lenses are only approximately known.
#pragma once

#include "focal_pose.h"
#include "lens.h"
#include "levenberg_marquardt.h"

namespace caransac {

struct LensPose {
    FocalPose focal_pose;
    Lenses lenses;  // in the unit of the rays, relative to the cameras that normalised them
};

// Thirteen degrees of freedom: the pose, then log_scale, x, y of each camera, then k1 of each lens.
class LensManifold {
  public:
    static constexpr int kDof = kLensPoseDof, kFirstLens = FocalManifold::kDof;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Square = Eigen::Matrix<double, kDof, kDof>;
    explicit LensManifold(const LensPose& model) : focal_(model.focal_pose), lenses_(model.lenses) {}
    LensPose model() const { return {focal_.model(), lenses_}; }
    const FocalManifold& focal() const { return focal_; }
    const Lenses& lenses() const { return lenses_; }
    LensManifold retract(const Delta& delta) const;

  private:
    FocalManifold focal_;
    Lenses lenses_;
};

// Refines a model by Levenberg-Marquardt on the robust Sampson cost of the rays through its lenses.
//   rays:    rays undistorted with `model.lenses`, with n weights
//   given:   lenses that the prior refers to
RefineReport refine_lens_pose(LensPose& model, const Columns<double>& rays, const double* weights, const Lenses& given,
                              const RefineOptions& options);

// J^T W J of the residuals: the information of the rays, undistorted with the model's lenses, for unit noise.
LensManifold::Square lens_information(const LensPose& model, const Columns<double>& rays, const double* weights);

}  // namespace caransac

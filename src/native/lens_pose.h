// Relative poses of cameras whose focal lengths, principal points and lenses are only nearly known.
#pragma once

#include "focal_pose.h"
#include "lens.h"
#include "levenberg_marquardt.h"

namespace caransac {

struct LensPose {
    FocalPose focal_pose;
    Lenses lenses;  // in the unit of the rays: those of the cameras that these were normalised with
};

// The pose, then log_scale, x, y of either camera, then k1 of either lens: thirteen degrees of freedom.
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

// Refines a model by Levenberg-Marquardt on the robust Sampson cost of what the rays are through its lenses.
//   rays:    as seen through `model.lenses`, with weights, n numbers
//   given:   the lenses that the prior is about
RefineReport refine_lens_pose(LensPose& model, const Columns<double>& rays, const double* weights, const Lenses& given,
                              const RefineOptions& options);

// J^T W J of the residuals: what rays, as seen through the model's lenses, say about it at noise one.
LensManifold::Square lens_information(const LensPose& model, const Columns<double>& rays, const double* weights);

}  // namespace caransac

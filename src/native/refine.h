// Non-linear refinement of models: Levenberg-Marquardt on their robust cost.
#pragma once

#include <vector>

#include "levenberg_marquardt.h"
#include "linear_system.h"

namespace caransac {

// Refines several models on the same points. Points without a positive weight or with extreme coordinates are ignored.
// The cost never increases: only steps that lower it are taken. No step is taken if fewer points than degrees of
// freedom remain. A fundamental matrix is always returned with rank two and norm one.
class Refiner {
  public:
    // points: columns, read only here; weights: n numbers, or null for equal weights.
    Refiner(const Columns<double>& points, const double* weights, const RefineOptions& options);

    // Kind: one of model_kinds.h.
    template <class Kind>
    RefineReport refine(typename Kind::Model& model) {
        typename Kind::Manifold at(model);
        if (options_.max_residual_sq > 0) {
            scores_.resize(padded(usable_.columns().n));
            Kind::rough_scores(Kind::model_of(at), usable_, options_.max_residual_sq, scores_.data());
            select_scored();
        }
        const WeightedPoints& points = thinned();
        RefineReport report{0, 0};
        if (points.columns().n >= Kind::Manifold::kDof)
            report = levenberg_marquardt(
                at, options_, [&](const auto& model_near) { return linearise(model_near, points, options_); });
        model = Kind::settled(at);
        return report;
    }

    // J^T W J of the residuals at a point of a manifold, dof x dof: the information of the points, for unit noise.
    template <class Manifold>
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> information(const Manifold& at) const {
        RefineOptions without_loss;
        without_loss.loss = Loss::kTruncated;
        without_loss.loss_scale = 1e50;  // all residuals count fully
        return linearise(at, usable_, without_loss).hessian;
    }

  private:
    void select_scored();
    const WeightedPoints& thinned();

    RefineOptions options_;
    WeightedPoints usable_, selected_;
    std::vector<int> index_;  // indices of the usable points; those selected for the current model come first
    int count_ = 0;           // number of selected points
    std::vector<float> scores_;
};

}  // namespace caransac

// Non-linear refinement of models: Levenberg-Marquardt on their robust cost.
#pragma once

#include <vector>

#include "levenberg_marquardt.h"
#include "linear_system.h"

namespace caransac {

// Refines one model after the other on the same points. Points without a positive weight or with absurd coordinates
// take no part. The cost never rises: no step is taken that does not lower it, and none at all when fewer points than
// degrees of freedom take part. A fundamental matrix comes back with rank two and norm one in any case.
class Refiner {
  public:
    // points: columns, read only here; weights: n numbers or null for ones.
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

    // J^T W J of the residuals at a point of a manifold, dof x dof: what the points say about it, at noise one.
    template <class Manifold>
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> information(const Manifold& at) const {
        RefineOptions without_loss;
        without_loss.loss = Loss::kTruncated;
        without_loss.loss_scale = 1e50;  // all residuals count in full
        return linearise(at, usable_, without_loss).hessian;
    }

  private:
    void select_scored();
    const WeightedPoints& thinned();

    RefineOptions options_;
    WeightedPoints usable_, selected_;
    std::vector<int> index_;  // of the usable points, the first of them those selected for the current model
    int count_ = 0;           // of those
    std::vector<float> scores_;
};

}  // namespace caransac

// Decisions of a round of the loop: which models are promising, which to attend to, and how large the noise is.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model_kinds.h"
#include "noise.h"
#include "regions.h"
#include "selection.h"

namespace caransac {

template <class Model>
std::vector<Model> take(const std::vector<Model>& models, const std::vector<int>& index) {
    std::vector<Model> taken;
    taken.reserve(index.size());
    for (const int i : index) taken.push_back(models[i]);
    return taken;
}

// The k models with the largest consensus, largest first.
template <class Kind>
std::vector<int> top_of(const std::vector<typename Kind::Model>& models, const Correspondences& correspondences,
                        double max_error, int k) {
    std::vector<int> index(std::min(k, static_cast<int>(models.size())));
    std::vector<double> totals(index.size());
    if (!index.empty())
        Kind::top(models, correspondences.single_columns(), max_error * max_error, static_cast<int>(index.size()),
                  index.data(), totals.data());
    return index;
}

// The `count` models with the largest consensus, refined on the same points.
template <class Kind>
std::vector<typename Kind::Model> promising(std::vector<typename Kind::Model> models,
                                            const Correspondences& correspondences, double max_error, int count,
                                            const RefineOptions& options) {
    models = take(models, top_of<Kind>(models, correspondences, max_error, count));
    Refiner refiner(correspondences.columns(), nullptr, options);
    for (auto& model : models) refiner.template refine<Kind>(model);
    return models;
}

// Consensus of each model by `Regions::spread_consensus`.
template <class Kind>
std::vector<double> spread_consensus(const std::vector<typename Kind::Model>& models,
                                     const Correspondences& correspondences, double max_error, const Regions& regions) {
    std::vector<double> totals;
    std::vector<float> row(padded(correspondences.size()));
    for (const auto& model : models) {
        Kind::rough_scores(model, correspondences, max_error * max_error, row.data());
        totals.push_back(regions.spread_consensus(row.data()));
    }
    return totals;
}

// The first `count` models, by decreasing `spread_consensus`, whose scores differ: the cosine of any two is below
// `same`.
template <class Kind>
std::vector<typename Kind::Model> most_distinct(const std::vector<typename Kind::Model>& models,
                                                const Correspondences& correspondences, double max_error,
                                                const Regions& regions, int count, double same) {
    const int m = static_cast<int>(models.size());
    const size_t stride = padded(correspondences.size());
    const std::unique_ptr<float[]> scores(new float[m * stride]);  // uninitialised, because all entries are overwritten
    std::vector<double> totals(m);
    for (int i = 0; i < m; ++i) {
        Kind::rough_scores(models[i], correspondences, max_error * max_error, scores.get() + i * stride);
        totals[i] = regions.spread_consensus(scores.get() + i * stride);
    }
    const std::vector<int> order = largest_first(totals);
    return take(models, distinct_rows(scores.get(), stride, correspondences.size(), order, count, same));
}

// The mean of the poses whose translation is closer than `reach` to that of the first, weighted by a power of their
// `spread_consensus`. Their errors differ, so the error of the mean is smaller. Returns the first pose if none has any
// consensus.
template <class Kind>
Pose mean_of_agreeing(const std::vector<Pose>& poses, const Correspondences& correspondences, double max_error,
                      const Regions& regions, double reach, double exponent) {
    const Pose& first = poses.front();
    std::vector<Pose> agreeing;
    for (const Pose& pose : poses)
        if ((pose.translation - first.translation).norm() < reach) agreeing.push_back(pose);
    const std::vector<typename Kind::Model> models(agreeing.begin(), agreeing.end());
    std::vector<double> weights = spread_consensus<Kind>(models, correspondences, max_error, regions);
    const double largest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
    if (!(largest > 0)) return first;
    for (double& weight : weights) weight = std::pow(weight / largest, exponent);
    return mean_pose(agreeing, weights);
}

template <class Kind>
std::vector<double> distances(const typename Kind::Model& model, const Correspondences& correspondences) {
    std::vector<double> result(padded(correspondences.size()));
    Kind::residuals_sq(model, correspondences.columns(), result.data());
    result.resize(correspondences.size());
    for (double& distance : result) distance = std::sqrt(distance);
    return result;
}

}  // namespace caransac

// The steps of a round, each in one call: what is promising, what to attend to, how large the noise is.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "kinds.h"
#include "noise.h"
#include "regions.h"
#include "selection.h"

namespace caransac {

template <class Kind>
std::vector<typename Kind::Model> read_models(const Models<Kind>& models) {
    std::vector<typename Kind::Model> own;
    own.reserve(models.shape(0));
    for (size_t i = 0; i < models.shape(0); ++i) own.push_back(model_at<Kind>(models, i));
    return own;
}

template <class Kind>
Out<double> write_models(const std::vector<typename Kind::Model>& models) {
    Buffer<double> result(3 * Kind::kColumns * models.size());
    for (size_t i = 0; i < models.size(); ++i) Kind::write(models[i], result.data() + 3 * Kind::kColumns * i);
    return std::move(result).to_numpy({models.size(), 3, Kind::kColumns});
}

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

// The models with the largest consensus on a few points, the best of these on more, refined there.
template <class Kind>
Out<double> promising(const Models<Kind>& models, const Correspondences& coarse, const Correspondences& fine,
                      double max_error, int shortlist, int count, const RefineOptions& options) {
    require(max_error > 0, "max_error must be positive");
    require(shortlist > 0 && count > 0, "shortlist and count must be positive");
    count_of(models.shape(0));
    std::vector<typename Kind::Model> kept;
    {
        LockRelease release;
        kept = read_models<Kind>(models);
        kept = take(kept, top_of<Kind>(kept, coarse, max_error, shortlist));
        kept = take(kept, top_of<Kind>(kept, fine, max_error, count));
        Refiner refiner(fine.columns(), nullptr, options);
        for (auto& model : kept) Kind::refine(refiner, model);
    }
    return write_models<Kind>(kept);
}

// Consensus of each model that counts evidence all over the images for more than a heap of it.
template <class Kind>
std::vector<double> spread_consensus_of(const std::vector<typename Kind::Model>& models,
                                        const Correspondences& correspondences, double max_error,
                                        const Regions& regions) {
    std::vector<double> totals;
    std::vector<float> row(padded(correspondences.size()));
    for (const auto& model : models) {
        Kind::rough_scores(model, correspondences, max_error * max_error, row.data());
        totals.push_back(regions.spread_consensus(row.data()));
    }
    return totals;
}

// Of the `finalists` models with the largest consensus all over the images, by search_error, the first `count` that
// differ; and their scores by max_error.
template <class Kind>
std::pair<Out<double>, Out<float>> attend(const Models<Kind>& models, const Correspondences& correspondences,
                                          const Regions& regions, double search_error, double max_error, int finalists,
                                          int count, double same) {
    require(search_error > 0 && max_error > 0, "search_error and max_error must be positive");
    require(finalists > 0 && count > 0, "finalists and count must be positive");
    require(regions.size() == correspondences.size(), "regions must be those of the correspondences");
    count_of(models.shape(0));
    const size_t n = correspondences.size();
    std::vector<typename Kind::Model> kept;
    Buffer<float> scores(std::min<size_t>(count, models.shape(0)) * n + kPadding);
    {
        LockRelease release;
        const auto own = read_models<Kind>(models);
        const auto totals = spread_consensus_of<Kind>(own, correspondences, search_error, regions);
        std::vector<int> order(own.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return totals[a] > totals[b]; });
        if (order.size() > static_cast<size_t>(finalists)) order.resize(finalists);
        Distinct rows(scores.data(), static_cast<int>(n), same);
        for (const int i : order) {
            if (rows.count() == count) break;
            Kind::msac_scores(own[i], correspondences.columns(), max_error * max_error, rows.next());
            if (rows.keep()) kept.push_back(own[i]);
        }
    }
    return {write_models<Kind>(kept), std::move(scores).to_numpy({kept.size(), n})};
}

template <class Kind>
std::vector<double> distances_of(const ModelIn<Kind>& model, const Correspondences& correspondences) {
    std::vector<double> distances(padded(correspondences.size()));
    Kind::residuals_sq(Kind::read(model.data()), correspondences.columns(), distances.data());
    distances.resize(correspondences.size());
    for (double& distance : distances) distance = std::sqrt(distance);
    return distances;
}

// How many points are closer to a model than wrong ones would be, and their median distance.
template <class Kind>
std::pair<double, double> right_matches(const ModelIn<Kind>& model, const Correspondences& correspondences, double near,
                                        int dimensions) {
    require(near > 0, "near must be positive");
    require(dimensions == 1 || dimensions == 2, "dimensions must be 1 or 2");
    LockRelease release;
    const RightMatches found = right_matches(distances_of<Kind>(model, correspondences), near, dimensions);
    return {found.count, found.median};
}

// How many points are within a distance of a model, and their median one.
template <class Kind>
std::pair<int, double> near_median(const ModelIn<Kind>& model, const Correspondences& correspondences, double near) {
    LockRelease release;
    std::vector<double> distances = distances_of<Kind>(model, correspondences);
    distances.erase(
        std::remove_if(distances.begin(), distances.end(), [&](double distance) { return !(distance < near); }),
        distances.end());
    const int count = static_cast<int>(distances.size());
    return {count, count > 0 ? median(distances) : near};
}

}  // namespace caransac

// Lenses that are only approximately known: conversion of rays, and refinement of poses with lenses.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "lens_pose.h"
#include "model_arrays.h"

namespace caransac {
namespace {

using namespace nb::literals;
using TwoNumbers = std::pair<double, double>;

Lenses lenses_of(const TwoNumbers& k1) {
    require(std::isfinite(k1.first) && std::isfinite(k1.second), "k1 must be finite");
    return {{k1.first, k1.second}};
}

std::vector<double> weights_of(const Numbers& weights, const Correspondences& rays) {
    require(weights.shape(0) == static_cast<size_t>(rays.size()), "weights must have one entry for every ray");
    std::vector<double> own(weights.data(), weights.data() + weights.size());
    require(std::all_of(own.begin(), own.end(), [](double w) { return w >= 0 && std::isfinite(w); }),
            "weights must be finite and not negative");
    return own;
}

Correspondences rays_through(const Correspondences& rays, const TwoNumbers& from, const TwoNumbers& to) {
    const Lenses before = lenses_of(from), after = lenses_of(to);
    LockRelease release;
    return change_lenses(rays, before, after);
}

// The refined model, k1 of its lenses, and the cost before and after refinement.
std::tuple<Out<double>, TwoNumbers, TwoNumbers> refine(const ModelIn<FocalPoses>& model, const TwoNumbers& k1,
                                                       const Correspondences& rays, const Numbers& weights,
                                                       const TwoNumbers& given, const RefineOptions& options) {
    LensPose refined{FocalPoses::read(model.data()), lenses_of(k1)};
    const Lenses expected = lenses_of(given);
    Buffer<double> result(3 * FocalPoses::kColumns);
    RefineReport report;
    {
        LockRelease release;
        report = refine_lens_pose(refined, rays.columns(), weights_of(weights, rays).data(), expected, options);
        FocalPoses::write(refined.focal_pose, result.data());
    }
    return {std::move(result).to_numpy({3, FocalPoses::kColumns}),
            {refined.lenses.k1[0], refined.lenses.k1[1]},
            {report.initial_cost, report.cost}};
}

Out<double> information(const ModelIn<FocalPoses>& model, const TwoNumbers& k1, const Correspondences& rays,
                        const Numbers& weights) {
    constexpr size_t kDof = LensManifold::kDof;
    const LensPose at{FocalPoses::read(model.data()), lenses_of(k1)};
    Buffer<double> result(kDof * kDof);
    {
        LockRelease release;
        Eigen::Map<LensManifold::Square>{result.data()} =
            lens_information(at, rays.columns(), weights_of(weights, rays).data());
    }
    return std::move(result).to_numpy({kDof, kDof});
}

}  // namespace

void bind_lenses(nb::module_& m) {
    m.def("change_lenses", &rays_through, "rays"_a, "before"_a, "after"_a,
          "Convert the rays of pixels from one pair of lenses to another.\n\n"
          "`before` and `after` are k1 of the lenses of images 1 and 2, in the unit of the rays (COLMAP's\n"
          "SIMPLE_RADIAL). A lens with negative k1 folds back at some radius. Beyond 0.9 of this radius, its tangent\n"
          "there is used.");
    m.def("refine_lens_pose", &refine, "model"_a, "k1"_a, "rays"_a, "weights"_a, "given"_a, "options"_a,
          "Refine a model (3, 6) of `FocalPoses` and k1 of its lenses on the robust Sampson cost of their rays.\n\n"
          "Args:\n"
          "    model: the model.\n"
          "    k1: k1 of its lenses.\n"
          "    rays: rays, undistorted with these lenses.\n"
          "    weights: (n,) weights of the rays, not negative.\n"
          "    given: k1 that the prior is centred on.\n"
          "    options: options of the refinement; the loss is always Cauchy's.\n\n"
          "Returns:\n"
          "    The model, k1, and the cost before and after.");
    m.def("lens_information", &information, "model"_a, "k1"_a, "rays"_a, "weights"_a,
          "Return J^T W J of the distances: the information (13, 13) about `RELATIVE` from rays with unit noise.");
}

}  // namespace caransac

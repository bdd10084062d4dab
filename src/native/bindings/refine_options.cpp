// Options of refinement by Levenberg-Marquardt.
#include <nanobind/stl/pair.h>

#include <cmath>
#include <utility>

#include "arrays.h"
#include "refine.h"

namespace caransac {
namespace {

using namespace nb::literals;

RefineOptions make_refine_options(Loss loss, double loss_scale, double max_residual, int max_steps, int max_points,
                                  double min_decrease, bool single_precision, const IntrinsicsPrior& intrinsics) {
    require(loss_scale > 0, "loss_scale must be positive");
    require(max_residual >= 0, "max_residual must not be negative");
    require(max_steps >= 0, "max_steps must not be negative");
    require(max_points >= 0, "max_points must not be negative");
    require(min_decrease >= 0, "min_decrease must not be negative");
    return {loss,
            loss_scale,
            max_residual * max_residual,
            max_steps,
            max_points,
            min_decrease,
            single_precision ? Precision::kSingle : Precision::kDouble,
            intrinsics};
}

}  // namespace

void bind_refine_options(nb::module_& m) {
    nb::enum_<Loss>(m, "Loss", "Robust loss of a squared residual.")
        .value("TRUNCATED", Loss::kTruncated)
        .value("CAUCHY", Loss::kCauchy);
    nb::class_<IntrinsicsPrior>(m, "IntrinsicsPrior",
                                "Prior of the intrinsics of two cameras: weights of squares in the cost.\n\n"
                                "Args:\n"
                                "    log_scale: weight of the log_scale of each camera; infinity fixes it.\n"
                                "    centre: weight of the principal point of each camera; infinity fixes it.\n"
                                "    log_scale_difference: weight of the difference of the two log_scales.\n"
                                "    centre_difference: weight of the difference of the principal points.\n"
                                "    k1: weight of the difference between the k1 of each lens and its given value.\n"
                                "    k1_difference: weight of the difference of the two k1.")
        .def(
            "__init__",
            [](IntrinsicsPrior* self, std::pair<double, double> log_scale, std::pair<double, double> centre,
               double log_scale_difference, double centre_difference, std::pair<double, double> k1,
               double k1_difference) {
                const IntrinsicsPrior prior{{log_scale.first, log_scale.second},
                                            {centre.first, centre.second},
                                            log_scale_difference,
                                            centre_difference,
                                            {k1.first, k1.second},
                                            k1_difference,
                                            0.0};
                for (const double precision : {prior.log_scale[0], prior.log_scale[1], prior.centre[0], prior.centre[1],
                                               prior.k1[0], prior.k1[1]})
                    require(precision >= 0, "log_scale, centre and k1 must not be negative");
                for (const double precision : {log_scale_difference, centre_difference, k1_difference})
                    require(precision >= 0 && std::isfinite(precision), "differences must be finite and not negative");
                new (self) IntrinsicsPrior(prior);
            },
            nb::kw_only(), "log_scale"_a = std::pair(0.0, 0.0), "centre"_a = std::pair(0.0, 0.0),
            "log_scale_difference"_a = 0.0, "centre_difference"_a = 0.0, "k1"_a = std::pair(0.0, 0.0),
            "k1_difference"_a = 0.0)
        .def(
            "with_lenses",
            [](IntrinsicsPrior prior, std::pair<double, double> k1, double k1_difference, double given) {
                require(k1.first >= 0 && k1.second >= 0, "k1 must not be negative");
                require(k1_difference >= 0 && std::isfinite(k1_difference),
                        "differences must be finite and not negative");
                prior.k1[0] = k1.first;
                prior.k1[1] = k1.second;
                require(std::isfinite(given), "given must be finite");
                prior.k1_difference = k1_difference;
                prior.k1_given = given;
                return prior;
            },
            "k1"_a, "k1_difference"_a, "given"_a = 0.0,
            "Return the prior with lenses; `given` is the k1 that the prior of absolute poses is centred on.");
    nb::class_<RefineOptions>(
        m, "RefineOptions",
        "Options of the refinement of models.\n\n"
        "Args:\n"
        "    loss: robust loss of the squared distance.\n"
        "    loss_scale: scale of the loss, in the unit of the points.\n"
        "    max_residual: maximum distance from the initial model of the points that are used.\n"
        "        They must be in front of its cameras. 0 uses all points.\n"
        "    max_steps: maximum number of Levenberg-Marquardt steps.\n"
        "    max_points: maximum number of points that are used, evenly spread; 0 for no limit.\n"
        "    min_decrease: relative decrease of the cost below which the refinement stops.\n"
        "    single_precision: whether steps are computed in single precision, in two thirds of\n"
        "        the time, for models that will be refined again. Costs stay in double precision.\n"
        "    intrinsics: prior of the intrinsics, for models with intrinsics.")
        .def(
            "__init__",
            [](RefineOptions* self, Loss loss, double loss_scale, double max_residual, int max_steps, int max_points,
               double min_decrease, bool single_precision, const IntrinsicsPrior& intrinsics) {
                new (self) RefineOptions(make_refine_options(loss, loss_scale, max_residual, max_steps, max_points,
                                                             min_decrease, single_precision, intrinsics));
            },
            nb::kw_only(), "loss"_a = Loss::kCauchy, "loss_scale"_a = 1.0, "max_residual"_a = 0.0, "max_steps"_a = 25,
            "max_points"_a = 0, "min_decrease"_a = 1e-7, "single_precision"_a = false,
            "intrinsics"_a = IntrinsicsPrior());
}

}  // namespace caransac

// Levenberg-Marquardt on a manifold. K. Levenberg, 1944; D. Marquardt, 1963.
#pragma once

#include <algorithm>

#include <Eigen/Cholesky>

#include "manifolds.h"

namespace caransac {

struct RefineReport {
    double initial_cost, cost;
};

// Minimises the cost of a model. Only steps that lower the cost are taken.
//   linearise: maps a model to its system: cost, and the halves of its gradient and Hessian
template <class Manifold, class Linearise>
RefineReport levenberg_marquardt(Manifold& model, const RefineOptions& options, Linearise linearise) {
    constexpr double kMinStep = 1e-12;  // shorter steps change nothing
    // Damping is relative to the diagonal. The floor, relative to the trace, is for directions without curvature.
    constexpr double kFirstDamping = 1e-4, kMinDamping = 1e-10, kMaxDamping = 1e8, kFloor = 1e-12;
    auto system = linearise(model);
    RefineReport report{system.cost, system.cost};
    double damping = kFirstDamping;
    for (int step = 0; step < options.max_steps && damping < kMaxDamping; ++step) {
        auto damped = system.hessian;
        const double floor = kFloor * damped.trace();
        damped.diagonal() += damping * damped.diagonal() + Manifold::Delta::Constant(floor);
        const typename Manifold::Delta delta = -damped.ldlt().solve(system.gradient);
        const double length = delta.norm();
        if (!(length > kMinStep)) break;  // converged, or NaN
        const Manifold candidate = model.retract(delta);
        const auto next = linearise(candidate);
        if (!(next.cost < system.cost)) {
            damping *= 10;
            continue;
        }
        const bool converged = system.cost - next.cost < options.min_decrease * system.cost;
        model = candidate;
        system = next;
        report.cost = next.cost;
        damping = std::max(damping * 0.1, kMinDamping);
        if (converged) break;
    }
    return report;
}

}  // namespace caransac

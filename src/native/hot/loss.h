// Robust losses, pack by pack.
#pragma once

#include "normal_equations.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// Minimum curvature divided by rho'(s): bounds the steps if all residuals are large.
constexpr double kLeastCurvature = 0.2;

// rho(s) of a squared residual s, its derivative rho'(s), and the curvature along the residual, rho'(s) + 2 s rho''(s),
// bounded from below. Steps that use it need half as many iterations (Triggs et al., "Bundle adjustment: a modern
// synthesis", 1999, section 4.3).
template <Loss kLoss>
inline Doubles evaluate_loss(const Doubles& s, double scale, Doubles& derivative, Doubles& curvature) {
    const double scale_sq = scale * scale;
    const Doubles one = broadcast(1.0);
    if constexpr (kLoss == Loss::kTruncated) {
        derivative = curvature = s < scale_sq ? one : Doubles{};
        return s < scale_sq ? s : broadcast(scale_sq);
    } else {
        const Doubles growth = 1.0 + s * (1 / scale_sq);
        derivative = 1.0 / growth;
        const Doubles bend = (2.0 - growth) * derivative * derivative;
        const Doubles least = kLeastCurvature * derivative;
        curvature = bend > least ? bend : least;
        return scale_sq * logarithm(growth);
    }
}

}  // namespace caransac::CARANSAC_ISA

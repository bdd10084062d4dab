// Robust losses, pack by pack.
#pragma once

#include "normal_equations.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// rho(s) and rho'(s)
template <Loss kLoss>
inline Doubles evaluate_loss(const Doubles& s, double scale, Doubles& derivative) {
    const double scale_sq = scale * scale;
    const Doubles one = broadcast(1.0);
    if constexpr (kLoss == Loss::kTruncated) {
        derivative = s < scale_sq ? one : Doubles{};
        return s < scale_sq ? s : broadcast(scale_sq);
    } else {
        const Doubles growth = 1.0 + s * (1 / scale_sq);
        derivative = 1.0 / growth;
        return scale_sq * logarithm(growth);
    }
}

}  // namespace caransac::CARANSAC_ISA

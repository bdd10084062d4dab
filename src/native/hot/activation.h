// Activations of a layer, for a pack of numbers.
#pragma once

#include "layers.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {

// tanh x = x P(x^2) / Q(x^2): the minimax approximation of degrees 4 and 4 on the range in which tanh is not yet one in
// single precision. Its error is below 4e-7, including rounding.
constexpr float kSaturated = 9;
constexpr float kNumerator[] = {1.31842219e-08f, 2.04718296e-05f, 0.00348658186f, 0.133731977f, 0.999999906f};
constexpr float kDenominator[] = {7.70266285e-07f, 0.000327138531f, 0.0258419791f, 0.467064945f, 1.0f};

inline Floats polynomial(const float (&coefficients)[5], const Floats& x) {
    Floats value = broadcast(coefficients[0]);
    for (int k = 1; k < 5; ++k) value = value * x + coefficients[k];
    return value;
}

inline Floats hyperbolic_tangent(const Floats& x) {
    const Floats clamped = smaller(broadcast(kSaturated), larger(broadcast(-kSaturated), x));
    const Floats square = clamped * clamped;
    return clamped * polynomial(kNumerator, square) / polynomial(kDenominator, square);
}

template <Activation kActivation>
inline Floats activation(const Floats& x) {
    if constexpr (kActivation == Activation::kTanh) return hyperbolic_tangent(x);
    if constexpr (kActivation == Activation::kLeakyRelu) return larger(kLeak * x, x);
    return x;
}

inline Floats activation(Activation which, const Floats& x) {
    switch (which) {
        case Activation::kTanh:
            return activation<Activation::kTanh>(x);
        case Activation::kLeakyRelu:
            return activation<Activation::kLeakyRelu>(x);
        default:
            return x;
    }
}

}  // namespace caransac::CARANSAC_ISA

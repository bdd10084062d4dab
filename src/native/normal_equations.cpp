#include "normal_equations.h"

#include "epipolar.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// r = c / sqrt(gradient) and dr/dM for one correspondence (or a pack of them), M row by row. A point on both epipoles,
// where the gradient vanishes, constrains nothing: its residual is taken for zero.
inline Doubles linearise(const Doubles m[9], const Doubles& u1, const Doubles& v1, const Doubles& u2, const Doubles& v2,
                         Doubles jacobian[9]) {
    const auto terms = epipolar_terms<Doubles>(m, u1, v1, u2, v2);
    const Doubles gradient = terms.gradient > 0.0 ? terms.gradient : broadcast(1.0);
    const Doubles inverse_norm = 1.0 / square_root(gradient);
    const Doubles ratio = terms.c / gradient;
    const Doubles x1[3] = {u1, v1, broadcast(1.0)};
    const Doubles x2[3] = {u2 * inverse_norm, v2 * inverse_norm, inverse_norm};
    const Doubles scaled = ratio * inverse_norm;
    const Doubles left[3] = {x2[0] - scaled * terms.a0, x2[1] - scaled * terms.a1, x2[2]};
    const Doubles right[3] = {ratio * terms.b0, ratio * terms.b1, Doubles{}};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) jacobian[3 * i + j] = left[i] * x1[j] - x2[i] * right[j];
    return terms.c * inverse_norm;
}

// rho(s) and rho'(s)
template <Loss kLoss>
inline Doubles evaluate_loss(const Doubles& s, double scale, Doubles& derivative) {
    const double scale_sq = scale * scale;
    const Doubles one = broadcast(1.0);
    if constexpr (kLoss == Loss::kSquared) {
        derivative = one;
        return s;
    } else if constexpr (kLoss == Loss::kTruncated) {
        derivative = s < scale_sq ? one : Doubles{};
        return s < scale_sq ? s : broadcast(scale_sq);
    } else if constexpr (kLoss == Loss::kCauchy) {
        const Doubles growth = 1.0 + s / scale_sq;
        derivative = 1.0 / growth;
        return scale_sq * logarithm(growth);
    } else {
        const Doubles distance = square_root(s);
        derivative = s > scale_sq ? scale / distance : one;
        return s > scale_sq ? 2 * scale * distance - scale_sq : s;
    }
}

template <Loss kLoss>
void accumulate(const double model[9], const Columns<double>& points, const double* weights, double scale,
                NormalEquations& out) {
    Doubles m[9], cost{}, gradient[9] = {}, hessian[45] = {};
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        Doubles jacobian[9], derivative;
        const Doubles residual =
            linearise(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i), load(points.v2 + i), jacobian);
        const Doubles weight = load(weights + i);
        cost += weight * evaluate_loss<kLoss>(residual * residual, scale, derivative);
        const Doubles effective = weight * derivative;
        int at = 0;
        for (int p = 0; p < 9; ++p) {
            const Doubles weighted = effective * jacobian[p];
            gradient[p] += weighted * residual;
            for (int q = p; q < 9; ++q) hessian[at++] += weighted * jacobian[q];
        }
    }
    out.cost = sum(cost);
    for (int i = 0; i < 9; ++i) out.gradient[i] = sum(gradient[i]);
    for (int i = 0; i < 45; ++i) out.hessian[i] = sum(hessian[i]);
}

}  // namespace

void normal_equations(const double model[9], const Columns<double>& points, const double* weights, Loss loss,
                      double loss_scale, NormalEquations& out) {
    switch (loss) {
        case Loss::kSquared:
            return accumulate<Loss::kSquared>(model, points, weights, loss_scale, out);
        case Loss::kTruncated:
            return accumulate<Loss::kTruncated>(model, points, weights, loss_scale, out);
        case Loss::kCauchy:
            return accumulate<Loss::kCauchy>(model, points, weights, loss_scale, out);
        case Loss::kHuber:
            return accumulate<Loss::kHuber>(model, points, weights, loss_scale, out);
    }
}

void residual_jacobian(const double model[9], const Columns<double>& points, double* residual, double* jacobian) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        Doubles packed[9];
        const Doubles r =
            linearise(m, load(points.u1 + i), load(points.v1 + i), load(points.u2 + i), load(points.v2 + i), packed);
        for (int l = 0; l < kDoubles && i + l < points.n; ++l) {
            residual[i + l] = lane(r, l);
            for (int p = 0; p < 9; ++p) jacobian[9 * (i + l) + p] = lane(packed[p], l);
        }
    }
}

}  // namespace caransac::CARANSAC_ISA

#include "normal_equations.h"

#include "epipolar.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// The Sampson distance c / sqrt(gradient) of one pack of correspondences and its derivatives by the entries of M, row
// by row, both up to the factor sqrt(inverse): most losses need nothing but its square.
struct Linearised {
    Doubles c, inverse, slope[9];
};

// A point on both epipoles, where the gradient vanishes, constrains nothing: its residual is taken for zero.
inline Linearised linearise(const Doubles m[9], const Columns<double>& points, int i) {
    const Doubles u1 = load(points.u1 + i), v1 = load(points.v1 + i), u2 = load(points.u2 + i),
                  v2 = load(points.v2 + i);
    const auto terms = epipolar_terms<Doubles>(m, u1, v1, u2, v2);
    const Doubles inverse = 1.0 / (terms.gradient > 0.0 ? terms.gradient : broadcast(1.0));
    // d(c / sqrt(gradient)) = sqrt(inverse) (x2 x1^T - (c / gradient) (a x1^T + x2 b^T)), and the third entries of a
    // and b count for nothing.
    const Doubles ratio = terms.c * inverse;
    const Doubles a0 = ratio * terms.a0, a1 = ratio * terms.a1;
    const Doubles y0 = u1 - ratio * terms.b0, y1 = v1 - ratio * terms.b1;
    return {terms.c,
            inverse,
            {u2 * y0 - a0 * u1, u2 * y1 - a0 * v1, u2 - a0, v2 * y0 - a1 * u1, v2 * y1 - a1 * v1, v2 - a1, y0, y1,
             broadcast(1.0)}};
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
        const Doubles growth = 1.0 + s * (1 / scale_sq);
        derivative = 1.0 / growth;
        return scale_sq * logarithm(growth);
    } else {
        const Doubles distance = square_root(s);
        derivative = s > scale_sq ? scale / distance : one;
        return s > scale_sq ? 2 * scale * distance - scale_sq : s;
    }
}

template <Loss kLoss, int kDof>
void accumulate(const double model[9], const double* jacobian, const Columns<double>& points, const double* weights,
                double scale, NormalEquations& out) {
    Doubles m[9], by_parameter[kDof][9], cost{}, gradient[kDof] = {}, hessian[kDof * (kDof + 1) / 2] = {};
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int p = 0; p < kDof; ++p)
        for (int i = 0; i < 9; ++i) by_parameter[p][i] = broadcast(jacobian[9 * p + i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Linearised at = linearise(m, points, i);
        const Doubles weight = load(weights + i);
        Doubles derivative, slope[kDof];
        cost += weight * evaluate_loss<kLoss>(at.c * at.c * at.inverse, scale, derivative);
        for (int p = 0; p < kDof; ++p) {
            slope[p] = by_parameter[p][8];
            for (int j = 0; j < 8; ++j) slope[p] += by_parameter[p][j] * at.slope[j];
        }
        const Doubles effective = weight * derivative * at.inverse;
        int next = 0;
        for (int p = 0; p < kDof; ++p) {
            const Doubles weighted = effective * slope[p];
            gradient[p] += weighted * at.c;
            for (int q = p; q < kDof; ++q) hessian[next++] += weighted * slope[q];
        }
    }
    out.cost = sum(cost);
    for (int p = 0; p < kDof; ++p) out.gradient[p] = sum(gradient[p]);
    for (int i = 0; i < kDof * (kDof + 1) / 2; ++i) out.hessian[i] = sum(hessian[i]);
}

template <Loss kLoss>
void accumulate(const double model[9], const double* jacobian, int dof, const Columns<double>& points,
                const double* weights, double scale, NormalEquations& out) {
    if (dof == 5)
        accumulate<kLoss, 5>(model, jacobian, points, weights, scale, out);
    else
        accumulate<kLoss, 7>(model, jacobian, points, weights, scale, out);
}

}  // namespace

void normal_equations(const double model[9], const double* jacobian, int dof, const Columns<double>& points,
                      const double* weights, Loss loss, double loss_scale, NormalEquations& out) {
    switch (loss) {
        case Loss::kSquared:
            return accumulate<Loss::kSquared>(model, jacobian, dof, points, weights, loss_scale, out);
        case Loss::kTruncated:
            return accumulate<Loss::kTruncated>(model, jacobian, dof, points, weights, loss_scale, out);
        case Loss::kCauchy:
            return accumulate<Loss::kCauchy>(model, jacobian, dof, points, weights, loss_scale, out);
        case Loss::kHuber:
            return accumulate<Loss::kHuber>(model, jacobian, dof, points, weights, loss_scale, out);
    }
}

void residual_jacobian(const double model[9], const Columns<double>& points, double* residual, double* jacobian) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Linearised at = linearise(m, points, i);
        const Doubles factor = square_root(at.inverse);
        for (int l = 0; l < kDoubles && i + l < points.n; ++l) {
            residual[i + l] = lane(factor * at.c, l);
            for (int p = 0; p < 9; ++p) jacobian[9 * (i + l) + p] = lane(factor * at.slope[p], l);
        }
    }
}

}  // namespace caransac::CARANSAC_ISA

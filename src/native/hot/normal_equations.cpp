#include "normal_equations.h"

#include "epipolar.h"
#include "loss.h"
#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

// A point on both epipoles constrains nothing: there the gradient vanishes except for rounding. Its residual is then c
// itself, which is practically zero.
inline Doubles inverse_gradient(const EpipolarTerms<Doubles>& terms) {
    constexpr double kSmallest = 1e-30;
    return 1.0 / (terms.gradient > kSmallest ? terms.gradient : broadcast(1.0));
}

// A few points with their residuals: c, c / gradient, and the weights of c^2 in the gradient of the cost and in its
// Hessian.
template <class Real>
struct Block {
    static constexpr int kSize = 2048 / sizeof(Real);  // fits the cache; small enough for sums in single precision
    Real u1[kSize], v1[kSize], u2[kSize], v2[kSize], c[kSize], ratio[kSize], weight[kSize], curvature[kSize];
    int count;
};

// Fills the block with the points starting at `first` and pads the last pack. Returns their cost.
template <Loss kLoss, class Real>
double evaluate(const double model[9], const Columns<double>& points, const double* weights, double scale, int first,
                Block<Real>& block) {
    Doubles m[9], cost{};
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    block.count = points.n - first < Block<Real>::kSize ? points.n - first : Block<Real>::kSize;
    const int whole_packs = (block.count + kFloats - 1) / kFloats * kFloats;
    for (int to = 0; to < whole_packs; to += kDoubles) {
        const int i = first + to;
        const Doubles u1 = load(points.u1 + i), v1 = load(points.v1 + i), u2 = load(points.u2 + i),
                      v2 = load(points.v2 + i), weight = load(weights + i);
        const auto terms = epipolar_terms<Doubles>(m, u1, v1, u2, v2);
        const Doubles inverse = inverse_gradient(terms), ratio = terms.c * inverse;
        Doubles derivative, curvature;
        cost += weight * evaluate_loss<kLoss>(terms.c * ratio, scale, derivative, curvature);
        store(block.u1 + to, u1);
        store(block.v1 + to, v1);
        store(block.u2 + to, u2);
        store(block.v2 + to, v2);
        store(block.c + to, terms.c);
        store(block.ratio + to, ratio);
        store(block.weight + to, weight * derivative * inverse);
        store(block.curvature + to, weight * curvature * inverse);
    }
    return sum(cost);
}

// Adds the gradient and Hessian of the block.
template <int kDof, class Real>
void accumulate(const double model[9], const double* jacobian, const Block<Real>& block, NormalEquations& out) {
    using Pack = decltype(broadcast(Real()));
    constexpr int kLanes = sizeof(Pack) / sizeof(Real);
    Pack m[9], by_parameter[kDof][9], gradient[kDof] = {}, hessian[kDof * (kDof + 1) / 2] = {};
    for (int i = 0; i < 9; ++i) m[i] = broadcast(static_cast<Real>(model[i]));
    for (int p = 0; p < kDof; ++p)
        for (int i = 0; i < 9; ++i) by_parameter[p][i] = broadcast(static_cast<Real>(jacobian[9 * p + i]));
    for (int i = 0; i < block.count; i += kLanes) {
        Pack by_entry[8], slope[kDof];
        differentiate<Pack>(m, load(block.u1 + i), load(block.v1 + i), load(block.u2 + i), load(block.v2 + i),
                            load(block.ratio + i), by_entry);
        for (int p = 0; p < kDof; ++p) {
            slope[p] = by_parameter[p][8];
            for (int j = 0; j < 8; ++j) slope[p] += by_parameter[p][j] * by_entry[j];
        }
        const Pack weighted = load(block.weight + i) * load(block.c + i), curvature = load(block.curvature + i);
        int next = 0;
        for (int p = 0; p < kDof; ++p) {
            gradient[p] += weighted * slope[p];
            const Pack curved = curvature * slope[p];
            for (int q = p; q < kDof; ++q) hessian[next++] += curved * slope[q];
        }
    }
    for (int p = 0; p < kDof; ++p) out.gradient[p] += sum(gradient[p]);
    for (int i = 0; i < kDof * (kDof + 1) / 2; ++i) out.hessian[i] += sum(hessian[i]);
}

// The same through the nine entries of the matrix: less work if there are more parameters than entries.
template <int kDof, class Real>
void accumulate_entries(const double model[9], const double* jacobian, const Block<Real>& block, NormalEquations& out) {
    using Pack = decltype(broadcast(Real()));
    constexpr int kLanes = sizeof(Pack) / sizeof(Real);
    Pack m[9], gradient[9] = {}, hessian[45] = {};
    for (int i = 0; i < 9; ++i) m[i] = broadcast(static_cast<Real>(model[i]));
    for (int i = 0; i < block.count; i += kLanes) {
        Pack slope[8];
        differentiate<Pack>(m, load(block.u1 + i), load(block.v1 + i), load(block.u2 + i), load(block.v2 + i),
                            load(block.ratio + i), slope);
        const Pack weighted = load(block.weight + i) * load(block.c + i), curvature = load(block.curvature + i);
        int next = 0;
        for (int p = 0; p < 8; ++p) {
            gradient[p] += weighted * slope[p];
            const Pack curved = curvature * slope[p];
            for (int q = p; q < 8; ++q) hessian[next++] += curved * slope[q];
            hessian[next++] += curved;
        }
        gradient[8] += weighted;
        hessian[next] += curvature;
    }
    double by_entry[9], both[9][9], half[kDof][9] = {};
    for (int p = 0, next = 0; p < 9; ++p) {
        by_entry[p] = sum(gradient[p]);
        for (int q = p; q < 9; ++q) both[p][q] = both[q][p] = sum(hessian[next++]);
    }
    for (int p = 0, next = 0; p < kDof; ++p) {
        for (int j = 0; j < 9; ++j) {
            out.gradient[p] += jacobian[9 * p + j] * by_entry[j];
            for (int k = 0; k < 9; ++k) half[p][k] += jacobian[9 * p + j] * both[j][k];
        }
        for (int q = p; q < kDof; ++q, ++next)
            for (int k = 0; k < 9; ++k) out.hessian[next] += half[p][k] * jacobian[9 * q + k];
    }
}

template <class Real>
void accumulate_blocks(const double model[9], const double* jacobian, int dof, const Columns<double>& points,
                       const double* weights, Loss loss, double loss_scale, NormalEquations& out) {
    const auto fill = loss == Loss::kTruncated ? evaluate<Loss::kTruncated, Real> : evaluate<Loss::kCauchy, Real>;
    const auto add = dof == kPoseDof          ? accumulate<kPoseDof, Real>
                     : dof == kFundamentalDof ? accumulate<kFundamentalDof, Real>
                                              : accumulate_entries<kFocalPoseDof, Real>;
    Block<Real> block;
    out = {};
    for (int first = 0; first < points.n; first += Block<Real>::kSize) {
        out.cost += fill(model, points, weights, loss_scale, first, block);
        add(model, jacobian, block, out);
    }
}

}  // namespace

void normal_equations(const double model[9], const double* jacobian, int dof, const Columns<double>& points,
                      const double* weights, Loss loss, double loss_scale, Precision precision, NormalEquations& out) {
    const auto accumulate_as = precision == Precision::kSingle ? accumulate_blocks<float> : accumulate_blocks<double>;
    accumulate_as(model, jacobian, dof, points, weights, loss, loss_scale, out);
}

void residual_jacobian(const double model[9], const Columns<double>& points, double* residual, double* jacobian) {
    Doubles m[9];
    for (int i = 0; i < 9; ++i) m[i] = broadcast(model[i]);
    for (int i = 0; i < points.n; i += kDoubles) {
        const Doubles u1 = load(points.u1 + i), v1 = load(points.v1 + i), u2 = load(points.u2 + i),
                      v2 = load(points.v2 + i);
        const auto terms = epipolar_terms<Doubles>(m, u1, v1, u2, v2);
        const Doubles inverse = inverse_gradient(terms), factor = square_root(inverse);
        Doubles slope[9];
        differentiate<Doubles>(m, u1, v1, u2, v2, terms.c * inverse, slope);
        slope[8] = broadcast(1.0);
        for (int l = 0; l < kDoubles && i + l < points.n; ++l) {
            residual[i + l] = lane(factor, l) * lane(terms.c, l);
            for (int p = 0; p < 9; ++p) jacobian[9 * (i + l) + p] = lane(factor, l) * lane(slope[p], l);
        }
    }
}

double loss_terms(const double* residuals, const double* weights, int n, Loss loss, double loss_scale, double* pull,
                  double* curvature) {
    const auto evaluate = loss == Loss::kTruncated ? evaluate_loss<Loss::kTruncated> : evaluate_loss<Loss::kCauchy>;
    Doubles cost{};
    for (int i = 0; i < n; i += kDoubles) {
        const Doubles residual = load(residuals + i), weight = load(weights + i);
        Doubles derivative, bend;
        cost += weight * evaluate(residual * residual, loss_scale, derivative, bend);
        store(pull + i, weight * derivative * residual);
        store(curvature + i, weight * bend);
    }
    return sum(cost);
}

}  // namespace caransac::CARANSAC_ISA

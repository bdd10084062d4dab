#include "ray_pose.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

template <class Real>
Vector3 ray_at(Real u, Real v) {
    const double radius_sq = std::min(static_cast<double>(u) * u + static_cast<double>(v) * v, 4.0);
    const double factor = std::sqrt(1 - 0.25 * radius_sq);
    return {factor * u, factor * v, 1 - 0.5 * radius_sq};
}

// x2^T E x1 of two rays, and the squared norm of its gradient on both spheres.
struct Terms {
    Vector3 x1, x2, line1, line2;
    double c, gradient;

    template <class Real>
    Terms(const Matrix3& essential, const Columns<Real>& points, int i)
        : x1(ray_at(points.u1[i], points.v1[i])), x2(ray_at(points.u2[i], points.v2[i])) {
        line1 = essential.transpose() * x2;
        line2 = essential * x1;
        c = x2.dot(line2);
        gradient = line1.squaredNorm() + line2.squaredNorm() - 2 * c * c;
    }
    double residual_sq() const { return c * c / gradient; }
};

bool in_front(const Pose& pose, const Terms& terms) {
    const Vector3 turned = pose.rotation * terms.x1;
    const double both = turned.dot(terms.x2), at = turned.dot(pose.translation), xt = terms.x2.dot(pose.translation);
    return both * xt - at >= 0 && xt - both * at >= 0;  // points at infinity count as in front
}

double score(double residual_sq, double max_error_sq) {
    return residual_sq < max_error_sq ? 1 - residual_sq / max_error_sq : 0;  // 0 for NaN
}

}  // namespace

void ray_residuals_sq(const RayManifold& model, const Columns<double>& points, double* out) {
    const Matrix3 essential = model.matrix();
    for (int i = 0; i < points.n; ++i) out[i] = Terms(essential, points, i).residual_sq();
}

void ray_scores(const RayManifold& model, const Columns<double>& points, double max_error_sq, float* out) {
    const Matrix3 essential = model.matrix();
    for (int i = 0; i < points.n; ++i) {
        const Terms terms(essential, points, i);
        const double found = score(terms.residual_sq(), max_error_sq);
        out[i] = found > 0 && in_front(model.pose(), terms) ? static_cast<float>(found) : 0;
    }
    std::fill(out + points.n, out + padded(points.n), 0.0F);
}

double ray_consensus(const RayManifold& model, const Columns<float>& points, double max_error_sq) {
    const Matrix3 essential = model.matrix();
    double total = 0;
    for (int i = 0; i < points.n; ++i) total += score(Terms(essential, points, i).residual_sq(), max_error_sq);
    return total;
}

void ray_jacobian(const RayManifold& model, const Columns<double>& points, double* residuals, double* jacobian) {
    const Matrix3 essential = model.matrix();
    const PoseManifold::Jacobian by_parameter = model.jacobian();
    for (int i = 0; i < points.n; ++i) {
        const Terms terms(essential, points, i);
        const double root = std::sqrt(terms.gradient);
        residuals[i] = terms.c / root;
        for (int k = 0; k < RayManifold::kDof; ++k) {
            const Eigen::Map<const Matrix3> change(by_parameter.col(k).data());
            const Vector3 line2 = change * terms.x1, line1 = change.transpose() * terms.x2;
            const double dc = terms.x2.dot(line2);
            const double half = terms.line2.dot(line2) + terms.line1.dot(line1) - 2 * terms.c * dc;
            jacobian[RayManifold::kDof * i + k] = (dc - terms.c * half / terms.gradient) / root;
        }
    }
}

}  // namespace caransac

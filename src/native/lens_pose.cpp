#include "lens_pose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Geometry>

#include "refine.h"

namespace caransac {
namespace {

using Entries = Eigen::Matrix<double, Eigen::Dynamic, 9, Eigen::RowMajor>;

// Distances depend on the degrees of freedom through the entries of a matrix and the lenses: sums over points are taken
// of these, an even number, and what they say of the degrees of freedom follows once.
constexpr int kEntries = 9, kNumbers = 12;
using Numbers = Eigen::Matrix<double, kNumbers, 1>;
using Chain = Eigen::Matrix<double, kNumbers, LensManifold::kDof>;

constexpr double kStrongest = 1.0;  // of lenses: rays through stronger ones make no sense

struct System {
    double cost;
    LensManifold::Square hessian;
    LensManifold::Delta gradient;
};

// How a ray moves with the lens, and with its point in the image.
struct Movement {
    double u, v;                       // direction from the middle
    double by_k1;                      // along it
    double along, across;              // per distance in the image, along the direction and across it
    double along_by_k1, across_by_k1;  // how these change
};

// Points as their distances from the middle of the image, and the directions to them.
class SeenPoints {
  public:
    SeenPoints(const Columns<double>& rays, const double* weights, const Lenses& lenses, int most) {
        std::vector<int> index;
        for (int i = 0; i < rays.n; ++i)
            if (weights[i] > 0 && is_usable(rays, i)) index.push_back(i);
        const double stride = most > 0 ? std::max(static_cast<double>(index.size()) / most, 1.0) : 1.0;
        const int n = static_cast<int>(static_cast<double>(index.size()) / stride);
        const double* from[2][2] = {{rays.u1, rays.v1}, {rays.u2, rays.v2}};
        weights_.resize(n);
        for (int k = 0; k < n; ++k) weights_[k] = weights[index[static_cast<int>(k * stride)]];
        for (int image = 0; image < 2; ++image) {
            const Lens lens(lenses.k1[image]);
            radii_[image].resize(n);
            for (int c = 0; c < 2; ++c) directions_[image][c].resize(n);
            for (int k = 0; k < n; ++k) {
                const int i = index[static_cast<int>(k * stride)];
                const double u = from[image][0][i], v = from[image][1][i], radius = std::sqrt(u * u + v * v);
                radii_[image][k] = lens.bend(radius);
                directions_[image][0][k] = radius > 0 ? u / radius : 0;
                directions_[image][1][k] = radius > 0 ? v / radius : 0;
            }
        }
    }
    int size() const { return static_cast<int>(weights_.size()); }
    const std::vector<double>& weights() const { return weights_; }

    // The rays through lenses, padded columns u1, v1, u2, v2, and for each image how they move.
    void see(const Lenses& lenses, std::vector<double> rays[4], std::vector<Movement> movements[2]) const {
        for (int c = 0; c < 4; ++c) rays[c].assign(padded(size()), 0.0);
        for (int image = 0; image < 2; ++image) {
            const Lens lens(lenses.k1[image]);
            movements[image].resize(size());
            for (int i = 0; i < size(); ++i) {
                const double seen = radii_[image][i], radius = lens.unbend(seen), change = lens.by_k1(radius);
                const double du = directions_[image][0][i], dv = directions_[image][1][i], slope = lens.slope(radius);
                rays[2 * image][i] = radius * du;
                rays[2 * image + 1][i] = radius * dv;
                Movement& movement = movements[image][i];
                movement = {du, dv, change, 1 / slope, seen > 0 ? radius / seen : 1, 0, 0};
                movement.along_by_k1 = -(3 * radius * radius + 6 * lens.k1() * radius * change) / (slope * slope);
                movement.across_by_k1 = seen > 0 ? change / seen : 0;
            }
        }
    }

  private:
    std::vector<double> weights_, radii_[2], directions_[2][2];
};

// Signed Sampson distances of points in the images as they are, bent, and their derivatives by the entries and lenses.
// Distances between rays would be the less, the more a lens draws these together.
struct Linearised {
    std::vector<double> residuals;
    Entries by_entry;
    std::vector<double> by_lens[2];
    Chain chain;  // derivatives of entries and lenses by the degrees of freedom

    Linearised(const LensManifold& at, const SeenPoints& points) : chain(Chain::Zero()) {
        const int n = points.size();
        std::vector<double> rays[4];
        std::vector<Movement> movements[2];
        points.see(at.lenses(), rays, movements);
        const Matrix3 matrix = at.focal().matrix();
        residuals.resize(padded(n));
        by_entry.resize(n, kEntries);
        kernels().residual_jacobian(matrix.data(), {rays[0].data(), rays[1].data(), rays[2].data(), rays[3].data(), n},
                                    residuals.data(), by_entry.data());
        residuals.resize(n);
        for (std::vector<double>& column : by_lens) column.resize(n);
        for (int i = 0; i < n; ++i) see_bent(matrix.data(), rays, movements, i);
        chain.topLeftCorner<kEntries, LensManifold::kFirstLens>() = at.focal().jacobian();
        for (int image = 0; image < 2; ++image) chain(kEntries + image, LensManifold::kFirstLens + image) = 1;
    }
    Numbers slopes(int i) const {
        Numbers all;
        all << by_entry.row(i).transpose(), by_lens[0][i], by_lens[1][i], 0.0;
        return all;
    }

  private:
    // r = c / sqrt(g) with g the squared gradient of c, first by the ray, then by the point of the image.
    void see_bent(const double* m, const std::vector<double> rays[4], const std::vector<Movement> movements[2], int i) {
        const double u1 = rays[0][i], v1 = rays[1][i], u2 = rays[2][i], v2 = rays[3][i];
        const double a[2] = {m[0] * u1 + m[1] * v1 + m[2], m[3] * u1 + m[4] * v1 + m[5]};
        const double b[2] = {m[0] * u2 + m[3] * v2 + m[6], m[1] * u2 + m[4] * v2 + m[7]};
        const double by_ray = a[0] * a[0] + a[1] * a[1] + b[0] * b[0] + b[1] * b[1], root = std::sqrt(by_ray);
        double by_point = 0, change[2];
        for (int image = 0; image < 2; ++image) {
            const double* line = image == 0 ? b : a;
            const Movement& move = movements[image][i];
            const double along = line[0] * move.u + line[1] * move.v, across = line[0] * move.v - line[1] * move.u;
            by_point += along * along * move.along * move.along + across * across * move.across * move.across;
            change[image] =
                along * along * move.along * move.along_by_k1 + across * across * move.across * move.across_by_k1;
        }
        if (!(by_ray > 0 && by_point > 0)) {
            residuals[i] = by_lens[0][i] = by_lens[1][i] = 0;
            by_entry.row(i).setZero();
            return;
        }
        const double factor = std::sqrt(by_ray / by_point);
        for (int image = 0; image < 2; ++image) {
            const Movement& move = movements[image][i];
            const double du = move.by_k1 * move.u, dv = move.by_k1 * move.v;
            const double* line = image == 0 ? b : a;
            const double dc = line[0] * du + line[1] * dv;
            const double half_dg = image == 0 ? (a[0] * m[0] + a[1] * m[3]) * du + (a[0] * m[1] + a[1] * m[4]) * dv
                                              : (b[0] * m[0] + b[1] * m[1]) * du + (b[0] * m[3] + b[1] * m[4]) * dv;
            by_lens[image][i] =
                factor * ((dc - residuals[i] * half_dg / root) / root - residuals[i] * change[image] / by_point);
        }
        residuals[i] *= factor;
        by_entry.row(i) *= factor;
    }
};

bool is_held(const IntrinsicsPrior& prior, int k) {
    if (k < PoseManifold::kDof) return false;
    if (k >= LensManifold::kFirstLens) return std::isinf(prior.k1[k - LensManifold::kFirstLens]);
    const int camera = (k - PoseManifold::kDof) / kCameraDof;
    return std::isinf(k == kFirstOfCamera[camera] ? prior.log_scale[camera] : prior.centre[camera]);
}

System linearise(const LensManifold& at, const SeenPoints& points, const Lenses& given, const RefineOptions& options) {
    constexpr double kLeastCurvature = 0.2;  // as in hot/loss.h
    const Linearised seen(at, points);
    const double scale_sq = options.loss_scale * options.loss_scale;
    const int n = points.size();
    double cost = 0;
    Numbers gradient = Numbers::Zero();
    Eigen::Matrix<double, kNumbers, kNumbers> hessian = Eigen::Matrix<double, kNumbers, kNumbers>::Zero();
    for (int i = 0; i < n; ++i) {
        const double residual = seen.residuals[i], weight = points.weights()[i];
        const double growth = 1 + residual * residual / scale_sq, derivative = 1 / growth;
        cost += weight * scale_sq * std::log(growth);
        const Numbers slopes = seen.slopes(i);
        gradient += weight * derivative * residual * slopes;
        const double curvature = std::max((2 - growth) * derivative * derivative, kLeastCurvature * derivative);
        hessian.noalias() += (weight * curvature * slopes) * slopes.transpose();
    }
    System system{cost, seen.chain.transpose() * hessian * seen.chain, seen.chain.transpose() * gradient};
    for (int k = PoseManifold::kDof; k < LensManifold::kDof; ++k)
        if (is_held(options.intrinsics, k)) {
            system.hessian.row(k).setZero();
            system.hessian.col(k).setZero();
            system.gradient[k] = 0;
        }
    // The prior: of focal lengths and principal points as without lenses, then of the lenses.
    constexpr int kFocal = FocalManifold::kDof;
    FocalManifold::Delta focal_gradient = system.gradient.head<kFocal>();
    Eigen::Matrix<double, kFocal, kFocal> focal_hessian = system.hessian.topLeftCorner<kFocal, kFocal>();
    at.focal().add_prior(options, system.cost, focal_gradient, focal_hessian);
    system.gradient.head<kFocal>() = focal_gradient;
    system.hessian.topLeftCorner<kFocal, kFocal>() = focal_hessian;
    const IntrinsicsPrior& prior = options.intrinsics;
    const double difference = at.lenses().k1[0] - at.lenses().k1[1];
    system.cost += prior.k1_difference * difference * difference;
    for (int image = 0; image < 2; ++image) {
        const int k = kFocal + image, other = kFocal + 1 - image;
        if (is_held(prior, k)) continue;
        const double off = at.lenses().k1[image] - given.k1[image];
        system.cost += prior.k1[image] * off * off;
        system.gradient[k] += prior.k1[image] * off + prior.k1_difference * (image == 0 ? difference : -difference);
        system.hessian(k, k) += prior.k1[image] + prior.k1_difference;
        if (!is_held(prior, other)) system.hessian(k, other) -= prior.k1_difference;
        if (std::abs(at.lenses().k1[image]) > kStrongest) system.cost = std::numeric_limits<double>::infinity();
    }
    for (int k = kFocal; k < LensManifold::kDof; ++k)
        if (is_held(prior, k)) system.hessian(k, k) = 1;
    return system;
}

}  // namespace

LensManifold LensManifold::retract(const Delta& delta) const {
    const FocalManifold moved = focal_.retract(delta.head<FocalManifold::kDof>());
    return LensManifold({moved.model(), {{lenses_.k1[0] + delta[kFirstLens], lenses_.k1[1] + delta[kFirstLens + 1]}}});
}

RefineReport refine_lens_pose(LensPose& model, const Columns<double>& rays, const double* weights, const Lenses& given,
                              const RefineOptions& options) {
    const SeenPoints points(rays, weights, model.lenses, options.max_points);
    int free = 0;
    for (int k = 0; k < LensManifold::kDof; ++k) free += !is_held(options.intrinsics, k);
    if (points.size() < free) return {0, 0};
    LensManifold at(model);
    const RefineReport report = levenberg_marquardt(
        at, options, [&](const LensManifold& here) { return linearise(here, points, given, options); });
    model = at.model();
    Matrix3& rotation = model.focal_pose.pose.rotation;
    rotation = Eigen::Quaterniond(Eigen::Matrix3d(rotation)).normalized().toRotationMatrix();
    return report;
}

LensManifold::Square lens_information(const LensPose& model, const Columns<double>& rays, const double* weights) {
    const SeenPoints points(rays, weights, model.lenses, 0);
    const Linearised seen(LensManifold(model), points);
    Eigen::Matrix<double, kNumbers, kNumbers> information = Eigen::Matrix<double, kNumbers, kNumbers>::Zero();
    for (int i = 0; i < points.size(); ++i) {
        const Numbers slopes = seen.slopes(i);
        information.noalias() += (points.weights()[i] * slopes) * slopes.transpose();
    }
    return seen.chain.transpose() * information * seen.chain;
}

}  // namespace caransac

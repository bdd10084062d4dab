#include "lens_pose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Geometry>

#include "refine.h"

namespace caransac {
namespace {

// Distances depend on the degrees of freedom only through the entries of a matrix and the lenses. Sums over points are
// computed for these, and converted to the degrees of freedom once.
constexpr int kEntries = 9;
using Chain = Eigen::Matrix<double, kLensNumbers, LensManifold::kDof>;

constexpr double kStrongest = 1.0;  // maximum strength of lenses; rays of stronger lenses are meaningless

struct System {
    double cost;
    LensManifold::Square hessian;
    LensManifold::Delta gradient;
};

// Points as distances from the image centre and directions to them.
class SeenPoints {
  public:
    SeenPoints(const Columns<double>& rays, const double* weights, const Lenses& lenses, int most) {
        std::vector<int> index;
        for (int i = 0; i < rays.n; ++i)
            if (weights[i] > 0 && is_usable(rays, i)) index.push_back(i);
        const double stride = most > 0 ? std::max(static_cast<double>(index.size()) / most, 1.0) : 1.0;
        size_ = static_cast<int>(static_cast<double>(index.size()) / stride);
        const double* from[2][2] = {{rays.u1, rays.v1}, {rays.u2, rays.v2}};
        for (std::vector<double>& column : columns_) column.assign(padded(size_), 0.0);
        for (int k = 0; k < size_; ++k) {
            const int i = index[static_cast<int>(k * stride)];
            columns_[kWeight][k] = weights[i];
            for (int image = 0; image < 2; ++image) {
                const double u = from[image][0][i], v = from[image][1][i], radius = std::sqrt(u * u + v * v);
                columns_[3 * image][k] = Lens(lenses.k1[image]).bend(radius);
                columns_[3 * image + 1][k] = radius > 0 ? u / radius : 1;  // any direction at the centre
                columns_[3 * image + 2][k] = radius > 0 ? v / radius : 0;
            }
        }
    }
    int size() const { return size_; }

    // The cost of a model as a function of its degrees of freedom. If the scale of the loss is infinite, it is least
    // squares and the value of the cost is not computed.
    System linearise(const LensManifold& at, double loss_scale) const {
        const SeenColumns seen{{column(0), column(3)}, {column(1), column(4)}, {column(2), column(5)}, size_};
        const LensCurve lenses[2] = {Lens(at.lenses().k1[0]).curve(), Lens(at.lenses().k1[1]).curve()};
        const Matrix3 matrix = at.focal().matrix();
        LensEquations found;
        kernels().lens_equations(matrix.data(), lenses, seen, column(kWeight), loss_scale, found);
        Eigen::Matrix<double, kLensNumbers, kLensNumbers> hessian;
        for (int p = 0, next = 0; p < kLensNumbers; ++p)
            for (int q = p; q < kLensNumbers; ++q) hessian(p, q) = hessian(q, p) = found.hessian[next++];
        const Eigen::Map<const Eigen::Matrix<double, kLensNumbers, 1>> gradient(found.gradient);
        Chain chain = Chain::Zero();
        chain.topLeftCorner<kEntries, LensManifold::kFirstLens>() = at.focal().jacobian();
        for (int image = 0; image < 2; ++image) chain(kEntries + image, LensManifold::kFirstLens + image) = 1;
        return {found.cost, chain.transpose() * hessian * chain, chain.transpose() * gradient};
    }

  private:
    static constexpr int kWeight = 6;
    const double* column(int c) const { return columns_[c].data(); }

    int size_;
    std::vector<double> columns_[7];
};

bool is_held(const IntrinsicsPrior& prior, int k) {
    if (k < PoseManifold::kDof) return false;
    if (k >= LensManifold::kFirstLens) return std::isinf(prior.k1[k - LensManifold::kFirstLens]);
    const int camera = (k - PoseManifold::kDof) / kCameraDof;
    return std::isinf(k == kFirstOfCamera[camera] ? prior.log_scale[camera] : prior.centre[camera]);
}

System linearise(const LensManifold& at, const SeenPoints& points, const Lenses& given, const RefineOptions& options) {
    System system = points.linearise(at, options.loss_scale);
    for (int k = PoseManifold::kDof; k < LensManifold::kDof; ++k)
        if (is_held(options.intrinsics, k)) {
            system.hessian.row(k).setZero();
            system.hessian.col(k).setZero();
            system.gradient[k] = 0;
        }
    // The prior: focal lengths and principal points as without lenses, then the lenses.
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
    return points.linearise(LensManifold(model), std::numeric_limits<double>::infinity()).hessian;
}

}  // namespace caransac

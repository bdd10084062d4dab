#include "refine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <Eigen/Geometry>

#include "correspondences.h"

namespace caransac {
namespace {

// The rotation next to one that many steps have rounded.
Matrix3 rotation_near(const Matrix3& rotation) {
    return Eigen::Quaterniond(Eigen::Matrix3d(rotation)).normalized().toRotationMatrix();
}

// All residuals count in full.
RefineOptions without_loss() {
    RefineOptions options;
    options.loss = Loss::kTruncated;
    options.loss_scale = kNoLoss;
    return options;
}

// Normal equations in the manifold's own parameters, of points and of the prior.
template <class Manifold>
struct SystemWithPrior {
    double cost;
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> hessian;
    typename Manifold::Delta gradient;

    SystemWithPrior(const NormalEquations& of_points, const Manifold& at, const RefineOptions& options)
        : cost(of_points.cost),
          hessian(symmetric<Manifold::kDof>(of_points.hessian)),
          gradient(Eigen::Map<const typename Manifold::Delta>(of_points.gradient)) {
        // The packed logarithm makes any number of what is none, and such a cost could be the lowest.
        if (!gradient.allFinite()) cost = std::numeric_limits<double>::quiet_NaN();
        at.add_prior(options, cost, gradient, hessian);
    }
};

template <class Manifold>
struct LinearSystem : SystemWithPrior<Manifold> {
    LinearSystem(const Manifold& at, const WeightedPoints& points, const RefineOptions& options)
        : SystemWithPrior<Manifold>(equations(at, points, options), at, options) {}

    static NormalEquations equations(const Manifold& at, const WeightedPoints& points, const RefineOptions& options) {
        NormalEquations raw;
        kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, points.columns(),
                                   points.weights(), options.loss, options.loss_scale, options.precision, raw);
        return raw;
    }
};

// One way's normal equations in the nine entries of its matrix, and in the manifold's parameters by the chain rule.
void add_way(const TransferSums& sums, const HomographyManifold::Basis& basis, HomographyManifold::Delta& gradient,
             Eigen::Matrix<double, kHomographyDof, kHomographyDof>& hessian) {
    Eigen::Matrix<double, 9, 9> by_entries = Eigen::Matrix<double, 9, 9>::Zero();
    const Eigen::Matrix3d ones = symmetric<3>(sums.moments[0]), p = symmetric<3>(sums.moments[1]),
                          q = symmetric<3>(sums.moments[2]), both = symmetric<3>(sums.moments[3]);
    by_entries.block<3, 3>(0, 0) = by_entries.block<3, 3>(3, 3) = ones;
    by_entries.block<3, 3>(0, 6) = by_entries.block<3, 3>(6, 0) = -p;
    by_entries.block<3, 3>(3, 6) = by_entries.block<3, 3>(6, 3) = -q;
    by_entries.block<3, 3>(6, 6) = both;
    gradient += basis.transpose() * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(sums.gradient);
    hessian += basis.transpose() * by_entries * basis;
}

template <>
struct LinearSystem<HomographyManifold> {
    double cost;
    Eigen::Matrix<double, kHomographyDof, kHomographyDof> hessian =
        Eigen::Matrix<double, kHomographyDof, kHomographyDof>::Zero();
    HomographyManifold::Delta gradient = HomographyManifold::Delta::Zero();

    LinearSystem(const HomographyManifold& at, const WeightedPoints& points, const RefineOptions& options) {
        TransferSums sums[2];
        kernels().transfer_equations(at.both_ways(), points.columns(), points.weights(), options.loss,
                                     options.loss_scale, cost, sums);
        const HomographyManifold::Basis forth = at.forth();
        add_way(sums[0], forth, gradient, hessian);
        add_way(sums[1], at.back(forth), gradient, hessian);
    }
};

template <int kDof>
struct LinearSystem<AbsoluteManifold<kDof>> : SystemWithPrior<AbsoluteManifold<kDof>> {
    using Manifold = AbsoluteManifold<kDof>;
    LinearSystem(const Manifold& at, const WeightedPoints& points, const RefineOptions& options)
        : SystemWithPrior<Manifold>(equations(at, points, options), at, options) {}

    static NormalEquations equations(const Manifold& at, const WeightedPoints& points, const RefineOptions& options) {
        NormalEquations raw;
        kernels().reprojection_equations(at.model().projection(), kDof, points.columns(), points.weights(),
                                         options.loss, options.loss_scale, options.precision, raw);
        return raw;
    }
};

template <>
struct LinearSystem<RayManifold> {
    double cost = 0;
    Eigen::Matrix<double, kPoseDof, kPoseDof> hessian;
    RayManifold::Delta gradient;

    LinearSystem(const RayManifold& at, const WeightedPoints& points, const RefineOptions& options) {
        constexpr double kLeastCurvature = 0.2;  // as in hot/loss.h
        const int n = points.columns().n;
        const double scale_sq = options.loss_scale * options.loss_scale;
        std::vector<double> residuals(n);
        Eigen::Matrix<double, Eigen::Dynamic, kPoseDof, Eigen::RowMajor> slopes(n, kPoseDof);
        ray_jacobian(at, points.columns(), residuals.data(), slopes.data());
        Eigen::VectorXd pull(n), curvature(n);
        for (int i = 0; i < n; ++i) {
            const double weight = points.weights()[i], square = residuals[i] * residuals[i];
            const double growth = 1 + square / scale_sq, derivative = 1 / growth;
            const bool inside = square < scale_sq, cauchy = options.loss == Loss::kCauchy;
            cost += weight * (cauchy ? scale_sq * std::log(growth) : std::min(square, scale_sq));
            pull[i] = weight * residuals[i] * (cauchy ? derivative : inside ? 1.0 : 0.0);
            const double bend = std::max((2 - growth) * derivative * derivative, kLeastCurvature * derivative);
            curvature[i] = weight * (cauchy ? bend : inside ? 1.0 : 0.0);
        }
        gradient = slopes.transpose() * pull;
        hessian = slopes.transpose() * curvature.asDiagonal() * slopes;
    }
};

template <class Manifold>
RefineReport minimise(Manifold& model, const WeightedPoints& points, const RefineOptions& options) {
    if (points.columns().n < Manifold::kDof) return {0, 0};
    return levenberg_marquardt(model, options,
                               [&](const Manifold& at) { return LinearSystem<Manifold>(at, points, options); });
}

// Writes where something is true of 0 to n - 1, ascending, and returns how often that is; index has room for n + 1.
template <class Predicate>
int where(int n, int* index, Predicate is_true) {
    int count = 0;
    for (int i = 0; i < n; ++i) {
        index[count] = i;
        count += is_true(i);  // no branch: nobody could predict it
    }
    return count;
}

}  // namespace

void WeightedPoints::gather(const Columns<double>& points, const double* weights, const int* index, int count) {
    count_ = count;
    in_space_ = points.w2 != nullptr;
    const int columns = in_space_ ? 6 : 5;
    data_.resize(columns * static_cast<size_t>(padded(count)));
    const double* from[6] = {weights, points.u1, points.v1, points.u2, points.v2, points.w2};
    double* to = data_.data();
    for (int c = 0; c < columns; ++c) {
        const double* column = from[c];
        for (int i = 0; i < count; ++i) to[i] = column == nullptr ? 1 : column[index[i]];
        to = std::fill_n(to + count, padded(count) - count, 0.0);
    }
}

Refiner::Refiner(const Columns<double>& points, const double* weights, const RefineOptions& options)
    : options_(options) {
    index_.resize(points.n + 1);
    count_ = where(points.n, index_.data(),
                   [&](int i) { return (weights == nullptr || weights[i] > 0) && is_usable(points, i); });
    usable_.gather(points, weights, index_.data(), count_);
    if (options.max_residual_sq > 0) usable_.round();
    std::iota(index_.begin(), index_.end(), 0);
}

// The points that score, where only such are wanted: score(max_error_sq, out) writes padded(n) of their scores.
template <class Score>
void Refiner::select(Score score) {
    if (!(options_.max_residual_sq > 0)) return;
    const int n = usable_.columns().n;
    scores_.resize(padded(n));
    score(options_.max_residual_sq, scores_.data());
    count_ = where(n, index_.data(), [scores = scores_.data()](int i) { return scores[i] > 0; });
}

// The selected points, or evenly spread ones among them when there are too many.
const WeightedPoints& Refiner::thinned() {
    const int most = options_.max_points;
    if (most > 0 && count_ > most) {
        const double stride = static_cast<double>(count_) / most;
        for (int i = 0; i < most; ++i) index_[i] = index_[static_cast<int>(i * stride)];
        count_ = most;
    }
    if (count_ == usable_.columns().n) return usable_;
    selected_.gather(usable_.columns(), usable_.weights(), index_.data(), count_);
    return selected_;
}

RefineReport Refiner::refine(Pose& pose) {
    PoseManifold model(pose);
    select([&](double max_error_sq, float* out) {
        kernels().rough_pose_scores(model.matrix().data(), rays_of(pose), usable_.single_columns(), max_error_sq, out);
    });
    const RefineReport report = minimise(model, thinned(), options_);
    pose = {rotation_near(model.pose().rotation), model.pose().translation};
    return report;
}

RefineReport Refiner::refine(Matrix3& fundamental) {
    FundamentalManifold model(fundamental);
    select([&](double max_error_sq, float* out) {
        kernels().rough_msac_scores(model.matrix().data(), usable_.single_columns(), max_error_sq, out);
    });
    const RefineReport report = minimise(model, thinned(), options_);
    fundamental = model.matrix() / model.matrix().norm();
    return report;
}

RefineReport Refiner::refine(FocalPose& focal_pose) {
    FocalManifold model(focal_pose);
    select([&](double max_error_sq, float* out) {
        const Columns<float> points = usable_.single_columns();
        kernels().rough_pose_scores(model.matrix().data(), rays_of(focal_pose), points, max_error_sq, out);
    });
    const RefineReport report = minimise(model, thinned(), options_);
    focal_pose = model.model();
    focal_pose.pose.rotation = rotation_near(focal_pose.pose.rotation);
    return report;
}

RefineReport Refiner::refine(HomographyManifold& homography) {
    select([&](double max_error_sq, float* out) {
        kernels().homography_scores(homography.both_ways(), usable_.columns(), max_error_sq, out);
    });
    return minimise(homography, thinned(), options_);
}

RefineReport Refiner::refine(RayManifold& pose) {
    select([&](double max_error_sq, float* out) { ray_scores(pose, usable_.columns(), max_error_sq, out); });
    const RefineReport report = minimise(pose, thinned(), options_);
    pose = RayManifold({rotation_near(pose.pose().rotation), pose.pose().translation});
    return report;
}

Eigen::Matrix<double, kPoseDof, kPoseDof> Refiner::information(const RayManifold& at) const {
    return LinearSystem<RayManifold>(at, usable_, without_loss()).hessian;
}

template <int kDof>
RefineReport Refiner::refine(AbsolutePose& pose) {
    select([&](double max_error_sq, float* out) {
        kernels().rough_reprojection_scores(pose.projection(), usable_.single_columns(), max_error_sq, out);
    });
    AbsoluteManifold<kDof> model(pose);
    const RefineReport report = minimise(model, thinned(), options_);
    pose = model.model();
    pose.pose.rotation = rotation_near(pose.pose.rotation);
    return report;
}

template RefineReport Refiner::refine<kAbsoluteDof>(AbsolutePose& pose);
template RefineReport Refiner::refine<kAbsoluteFocalDof>(AbsolutePose& pose);

Eigen::MatrixXd Refiner::reprojection_information(const Projection& projection, int dof) const {
    NormalEquations raw;
    kernels().reprojection_equations(projection, dof, usable_.columns(), usable_.weights(), Loss::kTruncated, kNoLoss,
                                     Precision::kDouble, raw);
    return dof == kAbsoluteDof ? Eigen::MatrixXd(symmetric<kAbsoluteDof>(raw.hessian))
                               : Eigen::MatrixXd(symmetric<kAbsoluteFocalDof>(raw.hessian));
}

Eigen::Matrix<double, kHomographyDof, kHomographyDof> Refiner::information(const HomographyManifold& at) const {
    return LinearSystem<HomographyManifold>(at, usable_, without_loss()).hessian;
}

}  // namespace caransac

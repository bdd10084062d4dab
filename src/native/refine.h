// Non-linear refinement of models: Levenberg-Marquardt on the robust Sampson cost.
#pragma once

#include <vector>

#include "focal_pose.h"
#include "hot/kernels.h"
#include "pose.h"

namespace caransac {

// How surely the intrinsics of two cameras are known: what is added to the cost for the squares of log_scale and of (x,
// y) of either camera, and for the squares of their differences between the cameras. Infinity holds a camera's fixed.
struct IntrinsicsPrior {
    double log_scale[2] = {0, 0}, centre[2] = {0, 0};
    double log_scale_difference = 0, centre_difference = 0;
};

struct RefineOptions {
    Loss loss = Loss::kCauchy;
    double loss_scale = 1;       // same unit as the points
    double max_residual_sq = 0;  // use only points below it at the start, in front of the cameras; 0 takes all
    int max_steps = 25;
    int max_points = 0;                        // use evenly spread ones when more qualify; 0 for no limit
    double min_decrease = 1e-7;                // relative decrease of the cost below which a step is the last
    Precision precision = Precision::kDouble;  // of the steps; single for models that will be refined again
    IntrinsicsPrior intrinsics;                // of models that have any
};

struct RefineReport {
    double initial_cost, cost;
    int steps;  // accepted or not
};

// R and t on SO(3) x S^2, five degrees of freedom. The translation's tangent plane is spanned by the columns of
// `tangent`.
class PoseManifold {
  public:
    static constexpr int kDof = 5;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit PoseManifold(const Pose& pose);
    const Pose& pose() const { return pose_; }
    Matrix3 matrix() const { return essential_from_pose(pose_); }
    Jacobian jacobian() const;                       // of matrix(), row by row, at delta = 0
    PoseManifold retract(const Delta& delta) const;  // (rotation vector on the left, translation tangent)
    void add_prior(const RefineOptions&, double&, Delta&, Eigen::Matrix<double, kDof, kDof>&) const {}  // none

  private:
    Pose pose_;
    Eigen::Matrix<double, 3, 2> tangent_;
};

// F = U diag(1, s, 0) V^T on SO(3) x R x SO(3), seven degrees of freedom: rank two by construction.
// A. Bartoli, P. Sturm, "Nonlinear estimation of the fundamental matrix with minimal parameters", TPAMI 2004.
class FundamentalManifold {
  public:
    static constexpr int kDof = 7;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit FundamentalManifold(const Matrix3& fundamental);
    Matrix3 matrix() const;
    Jacobian jacobian() const;
    FundamentalManifold retract(const Delta& delta) const;  // (rotation of U, rotation of V, s), rotations on the right
    void add_prior(const RefineOptions&, double&, Delta&, Eigen::Matrix<double, kDof, kDof>&) const {}  // none

  private:
    FundamentalManifold(const Matrix3& u, const Matrix3& v, double s) : u_(u), v_(v), s_(s) {}
    Matrix3 u_, v_;
    double s_;
};

// A relative pose, and the intrinsics of both cameras: eleven degrees of freedom.
class FocalManifold {
  public:
    static constexpr int kDof = 11;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit FocalManifold(const FocalPose& model)
        : pose_(model.pose), camera1_(model.camera1), camera2_(model.camera2) {}
    FocalPose model() const { return {pose_.pose(), camera1_, camera2_}; }
    Matrix3 matrix() const { return matrix_of(model()); }
    Jacobian jacobian() const;
    FocalManifold retract(const Delta& delta) const;  // (pose, then log_scale, x, y of either camera)

    // Adds the prior to a cost, and to the halves of its gradient and Hessian.
    void add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                   Eigen::Matrix<double, kDof, kDof>& hessian) const;

  private:
    PoseManifold pose_;
    Intrinsics camera1_, camera2_;
};

// Homographies of Frobenius norm one: eight degrees of freedom, the directions across the matrix.
class HomographyManifold {
  public:
    static constexpr int kDof = 8;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Basis = Eigen::Matrix<double, 9, kDof>;
    explicit HomographyManifold(const Matrix3& homography);
    const Matrix3& matrix() const { return matrix_; }
    TwoWayHomography both_ways() const;
    Basis forth() const;                   // derivatives of matrix()
    Basis back(const Basis& forth) const;  // derivatives of its inverse
    HomographyManifold retract(const Delta& delta) const;

  private:
    Matrix3 matrix_, inverse_;
};

// Correspondences and their weights, packed into columns of their own.
class WeightedPoints {
  public:
    // The given points of a set; no weights are ones. Keeps its memory from one call to the next.
    void gather(const Columns<double>& points, const double* weights, const std::vector<int>& index);
    Columns<double> columns() const { return {column(0), column(1), column(2), column(3), count_}; }
    const double* weights() const { return column(4); }

  private:
    const double* column(int c) const { return data_.data() + static_cast<size_t>(c) * padded(count_); }
    std::vector<double> data_;
    int count_ = 0;
};

template <int kDof>
Eigen::Matrix<double, kDof, kDof> symmetric(const double* upper_triangle) {
    Eigen::Matrix<double, kDof, kDof> matrix;
    for (int i = 0; i < kDof; ++i)
        for (int j = i; j < kDof; ++j) matrix(i, j) = matrix(j, i) = *upper_triangle++;
    return matrix;
}

// Refines one model after the other on the same points. Points without a positive weight or with absurd coordinates
// take no part. The cost never rises: no step is taken that does not lower it, and none at all when fewer points than
// degrees of freedom take part. A fundamental matrix comes back with rank two and norm one in any case.
class Refiner {
  public:
    // points: columns, read only here; weights: n numbers or null for ones.
    Refiner(const Columns<double>& points, const double* weights, const RefineOptions& options);
    // J^T W J of the residuals at a point of a manifold, dof x dof: what the points say about it, at noise one.
    template <class Manifold>
    Eigen::Matrix<double, Manifold::kDof, Manifold::kDof> information(const Manifold& at) const {
        NormalEquations raw;
        constexpr double kEverything = 1e100;  // no loss: all residuals count in full
        kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, usable_.columns(),
                                   usable_.weights(), Loss::kTruncated, kEverything, Precision::kDouble, raw);
        return symmetric<Manifold::kDof>(raw.hessian);
    }
    Eigen::Matrix<double, 8, 8> information(const HomographyManifold& at) const;
    RefineReport refine(Pose& pose);
    RefineReport refine(Matrix3& fundamental);
    RefineReport refine(FocalPose& model);
    RefineReport refine(HomographyManifold& homography);

  private:
    void select_close(const Matrix3& matrix);
    void select_in_front(const Rays& rays);
    const WeightedPoints& thinned();

    RefineOptions options_;
    WeightedPoints usable_, selected_;
    std::vector<int> index_;  // of the usable points, those selected for the current model
    std::vector<double> in_front_, residuals_sq_;
};

}  // namespace caransac

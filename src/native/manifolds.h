// Models as points of manifolds: the effect of a small step in each degree of freedom.
#pragma once

#include "absolute_pose.h"
#include "focal_pose.h"
#include "hot/degrees_of_freedom.h"
#include "hot/kernels.h"
#include "pose.h"

namespace caransac {

// Prior information about the intrinsics of two cameras: weights of the squares of log_scale and of (x, y) of each
// camera, and of the squares of their differences between the cameras. Infinity fixes a value. For models with lenses,
// also the weight of the squared difference of k1 from its given value. Absolute poses have only the first camera;
// `k1_given` is the given value of its lens.
struct IntrinsicsPrior {
    double log_scale[2] = {0, 0}, centre[2] = {0, 0};
    double log_scale_difference = 0, centre_difference = 0;
    double k1[2] = {0, 0}, k1_difference = 0, k1_given = 0;
};

struct RefineOptions {
    Loss loss = Loss::kCauchy;
    double loss_scale = 1;       // in the unit of the points
    double max_residual_sq = 0;  // use only points below it at the start that are in front of the cameras; 0 uses all
    int max_steps = 25;
    int max_points = 0;                        // if more points qualify, use evenly spread ones; 0 for no limit
    double min_decrease = 1e-7;                // stop after a step that lowers the cost by less than this fraction
    Precision precision = Precision::kDouble;  // precision of the steps; single for models that will be refined again
    IntrinsicsPrior intrinsics;                // used by models with intrinsics
};

// R and t on SO(3) x S^2, five degrees of freedom. The columns of `tangent` span the tangent plane of the translation.
class PoseManifold {
  public:
    static constexpr int kDof = kPoseDof;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit PoseManifold(const Pose& pose);
    const Pose& pose() const { return pose_; }
    Matrix3 matrix() const { return essential_from_pose(pose_); }
    Jacobian jacobian() const;                       // of matrix(), row by row, at delta = 0
    PoseManifold retract(const Delta& delta) const;  // (rotation vector on the left, translation tangent)
    void add_prior(const RefineOptions&, double&, Delta&, Eigen::Matrix<double, kDof, kDof>&) const {}  // no prior

  private:
    Pose pose_;
    Eigen::Matrix<double, 3, 2> tangent_;
};

// F = U diag(1, s, 0) V^T on SO(3) x R x SO(3), seven degrees of freedom: rank two by construction.
// A. Bartoli, P. Sturm, "Nonlinear estimation of the fundamental matrix with minimal parameters", TPAMI 2004.
class FundamentalManifold {
  public:
    static constexpr int kDof = kFundamentalDof;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit FundamentalManifold(const Matrix3& fundamental);
    Matrix3 matrix() const;
    Jacobian jacobian() const;
    FundamentalManifold retract(const Delta& delta) const;  // (rotation of U, rotation of V, s), rotations on the right
    void add_prior(const RefineOptions&, double&, Delta&, Eigen::Matrix<double, kDof, kDof>&) const {}  // no prior

  private:
    FundamentalManifold(const Matrix3& u, const Matrix3& v, double s) : u_(u), v_(v), s_(s) {}
    Matrix3 u_, v_;
    double s_;
};

// A relative pose and the intrinsics of both cameras: eleven degrees of freedom.
class FocalManifold {
  public:
    static constexpr int kDof = kFocalPoseDof;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    using Jacobian = Eigen::Matrix<double, 9, kDof>;
    explicit FocalManifold(const FocalPose& model)
        : pose_(model.pose), camera1_(model.camera1), camera2_(model.camera2) {}
    FocalPose model() const { return {pose_.pose(), camera1_, camera2_}; }
    Matrix3 matrix() const { return matrix_of(model()); }
    Jacobian jacobian() const;
    FocalManifold retract(const Delta& delta) const;  // (pose, then log_scale, x, y of each camera)

    // Adds the prior to a cost, and to the halves of its gradient and Hessian.
    void add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                   Eigen::Matrix<double, kDof, kDof>& hessian) const;

  private:
    PoseManifold pose_;
    Intrinsics camera1_, camera2_;
};

// An absolute pose: six degrees of freedom, or ten with the intrinsics of its camera.
template <int kDegrees>
class AbsoluteManifold {
  public:
    static constexpr int kDof = kDegrees;
    using Delta = Eigen::Matrix<double, kDof, 1>;
    explicit AbsoluteManifold(const AbsolutePose& model) : model_(model) {}
    const AbsolutePose& model() const { return model_; }
    // (rotation vector on the left, translation, then log_scale, x, y and k1)
    AbsoluteManifold retract(const Delta& delta) const;
    void add_prior(const RefineOptions& options, double& cost, Delta& gradient,
                   Eigen::Matrix<double, kDof, kDof>& hessian) const;

  private:
    AbsolutePose model_;
};

// Homographies of Frobenius norm one: eight degrees of freedom, perpendicular to the matrix.
class HomographyManifold {
  public:
    static constexpr int kDof = kHomographyDof;
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

}  // namespace caransac

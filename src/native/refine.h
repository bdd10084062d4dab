// Non-linear refinement of models: Levenberg-Marquardt on the robust Sampson cost.
#pragma once

#include <cstddef>
#include <vector>

#include "levenberg_marquardt.h"
#include "manifolds.h"
#include "ray_pose.h"

namespace caransac {

constexpr double kNoLoss = 1e50;  // scale of a truncated loss at which all residuals count in full

// Correspondences and their weights, packed into columns of their own.
class WeightedPoints {
  public:
    // The given points of a set; no weights are ones. Keeps its memory from one call to the next.
    void gather(const Columns<double>& points, const double* weights, const int* index, int count);
    Columns<double> columns() const {
        return {column(1), column(2), column(3), column(4), count_, in_space_ ? column(5) : nullptr};
    }
    const double* weights() const { return column(0); }
    // The points in single precision, once they have been rounded to it.
    void round() { rounded_.assign(data_.begin(), data_.end()); }
    Columns<float> single_columns() const {
        const size_t stride = padded(count_);
        const float* u1 = rounded_.data() + stride;
        return {u1, u1 + stride, u1 + 2 * stride, u1 + 3 * stride, count_, in_space_ ? u1 + 4 * stride : nullptr};
    }

  private:
    const double* column(int c) const { return data_.data() + static_cast<size_t>(c) * padded(count_); }
    std::vector<double> data_;
    std::vector<float> rounded_;
    int count_ = 0;
    bool in_space_ = false;
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
        kernels().normal_equations(at.matrix().data(), at.jacobian().data(), Manifold::kDof, usable_.columns(),
                                   usable_.weights(), Loss::kTruncated, kNoLoss, Precision::kDouble, raw);
        return symmetric<Manifold::kDof>(raw.hessian);
    }
    Eigen::Matrix<double, kHomographyDof, kHomographyDof> information(const HomographyManifold& at) const;
    template <int kDof>
    Eigen::Matrix<double, kDof, kDof> information(const AbsoluteManifold<kDof>& at) const {
        return reprojection_information(at.model().projection(), kDof);
    }
    Eigen::Matrix<double, kPoseDof, kPoseDof> information(const RayManifold& at) const;
    RefineReport refine(Pose& pose);
    RefineReport refine(Matrix3& fundamental);
    RefineReport refine(FocalPose& model);
    RefineReport refine(HomographyManifold& homography);
    // kDof: six for a pose alone, ten with the intrinsics of its camera.
    template <int kDof>
    RefineReport refine(AbsolutePose& model);
    RefineReport refine(RayManifold& pose);

  private:
    Eigen::MatrixXd reprojection_information(const Projection& projection, int dof) const;
    template <class Score>
    void select(Score score);
    const WeightedPoints& thinned();

    RefineOptions options_;
    WeightedPoints usable_, selected_;
    std::vector<int> index_;  // of the usable points, the first of them those selected for the current model
    int count_ = 0;           // of those
    std::vector<float> scores_;
};

}  // namespace caransac

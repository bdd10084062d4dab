// The robust cost of a model near a point of its manifold, to second order: the system that each refinement step
// solves.
#pragma once

#include <cstddef>
#include <vector>

#include "manifolds.h"
#include "ray_pose.h"

namespace caransac {

// Correspondences and their weights, packed into separate columns.
class WeightedPoints {
  public:
    // Sets the given points; without weights, all are one. Reuses its memory between calls.
    void gather(const Columns<double>& points, const double* weights, const int* index, int count);
    Columns<double> columns() const {
        return {column(1), column(2), column(3), column(4), count_, in_space_ ? column(5) : nullptr};
    }
    const double* weights() const { return column(0); }
    // The points in single precision, rounded on first use.
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

// The cost of points and prior at a point of a manifold, and the halves of its gradient and Hessian.
template <int kDof>
struct LinearSystem {
    double cost = 0;
    Eigen::Matrix<double, kDof, kDof> hessian = Eigen::Matrix<double, kDof, kDof>::Zero();
    Eigen::Matrix<double, kDof, 1> gradient = Eigen::Matrix<double, kDof, 1>::Zero();
};

// A new kind of model adds one overload.
LinearSystem<kPoseDof> linearise(const PoseManifold& at, const WeightedPoints& points, const RefineOptions& options);
LinearSystem<kFundamentalDof> linearise(const FundamentalManifold& at, const WeightedPoints& points,
                                        const RefineOptions& options);
LinearSystem<kFocalPoseDof> linearise(const FocalManifold& at, const WeightedPoints& points,
                                      const RefineOptions& options);
LinearSystem<kHomographyDof> linearise(const HomographyManifold& at, const WeightedPoints& points,
                                       const RefineOptions& options);
LinearSystem<kPoseDof> linearise(const RayManifold& at, const WeightedPoints& points, const RefineOptions& options);
LinearSystem<kAbsoluteDof> linearise(const AbsoluteManifold<kAbsoluteDof>& at, const WeightedPoints& points,
                                     const RefineOptions& options);
LinearSystem<kAbsoluteFocalDof> linearise(const AbsoluteManifold<kAbsoluteFocalDof>& at, const WeightedPoints& points,
                                          const RefineOptions& options);

}  // namespace caransac

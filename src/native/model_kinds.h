// The kinds of models and their common operations: read, write, score, rank, normalise after steps on the manifold.
// CONTRIBUTING.md, "A new problem", lists what a new kind needs.
#pragma once

#include <vector>

#include "correspondences.h"
#include "hot/kernels.h"
#include "refine.h"
#include "selection.h"

namespace caransac {

// Common part of epipolar models: all are measured by the Sampson distance to a matrix.
template <class Kind>
struct Epipolar {
    static constexpr int kDimensions = 2;  // of the points that match image 1
    template <class Model>
    static void residuals_sq(const Model& model, const Columns<double>& points, double* out) {
        kernels().residuals_sq(Kind::matrix(model).data(), points, out);
    }
    template <class Model>
    static void top(const std::vector<Model>& models, const Columns<float>& points, double max_error_sq, int k,
                    int* index, double* totals) {
        std::vector<double> matrices(9 * models.size());
        for (size_t i = 0; i < models.size(); ++i)
            Eigen::Map<Matrix3>(matrices.data() + 9 * i) = Kind::matrix(models[i]);
        kernels().top_models(matrices.data(), static_cast<int>(models.size()), points, max_error_sq, k, index, totals);
    }
};

// Common part of poses: a point behind a camera scores zero.
template <class Kind>
struct Oriented : Epipolar<Kind> {
    template <class Model>
    static void msac_scores(const Model& model, const Columns<double>& points, double max_error_sq, float* out) {
        kernels().pose_scores(Kind::matrix(model).data(), rays_of(model), points, max_error_sq, out);
    }
    // The same in single precision, for comparing models.
    template <class Model, class Points>
    static void rough_scores(const Model& model, const Points& points, double max_error_sq, float* out) {
        kernels().rough_pose_scores(Kind::matrix(model).data(), rays_of(model), points.single_columns(), max_error_sq,
                                    out);
    }
};

// Rows [R | t] of relative poses.
struct Poses : Oriented<Poses> {
    static constexpr int kColumns = 4;
    using Model = Pose;
    using Manifold = PoseManifold;
    static Model read(const double* from) { return read_pose(from); }
    static void write(const Model& model, double* to) { write_pose(model, to); }
    static Matrix3 matrix(const Model& model) { return essential_from_pose(model); }
    static Model model_of(const Manifold& manifold) { return manifold.pose(); }
    static Model settled(const Manifold& at) { return {rotation_near(at.pose().rotation), at.pose().translation}; }
};

// Rows [R | t | a1 | a2] of relative poses with the intrinsics of their cameras.
struct FocalPoses : Oriented<FocalPoses> {
    static constexpr int kColumns = 6;
    using Model = FocalPose;
    using Manifold = FocalManifold;
    static Model read(const double* from) { return read_focal_pose(from); }
    static void write(const Model& model, double* to) { write_focal_pose(model, to); }
    static Matrix3 matrix(const Model& model) { return matrix_of(model); }
    static Model model_of(const Manifold& manifold) { return manifold.model(); }
    static Model settled(const Manifold& at) {
        const Model model = at.model();
        return {{rotation_near(model.pose.rotation), model.pose.translation}, model.camera1, model.camera2};
    }
};

struct Fundamentals : Epipolar<Fundamentals> {
    static constexpr int kColumns = 3;
    using Model = Matrix3;
    using Manifold = FundamentalManifold;
    static Model read(const double* from) { return Eigen::Map<const Matrix3>(from); }
    static void write(const Model& model, double* to) { Eigen::Map<Matrix3>{to} = model; }
    static Matrix3 matrix(const Model& model) { return model; }
    static Model model_of(const Manifold& manifold) { return manifold.matrix(); }
    static void msac_scores(const Model& model, const Columns<double>& points, double max_error_sq, float* out) {
        kernels().msac_scores(model.data(), points, max_error_sq, out);
    }
    template <class Points>
    static void rough_scores(const Model& model, const Points& points, double max_error_sq, float* out) {
        kernels().rough_msac_scores(model.data(), points.single_columns(), max_error_sq, out);
    }
    static Model settled(const Manifold& at) { return at.matrix() / at.matrix().norm(); }
};

// x2 ~ H x1, measured by the symmetric transfer error.
struct Homographies {
    static constexpr int kDimensions = 2, kColumns = 3;
    using Model = HomographyManifold;
    using Manifold = HomographyManifold;
    static Model read(const double* from) { return Model(Eigen::Map<const Matrix3>(from)); }
    static void write(const Model& model, double* to) { Eigen::Map<Matrix3>{to} = model.matrix(); }
    static Model model_of(const Manifold& manifold) { return manifold; }
    static void residuals_sq(const Model& model, const Columns<double>& points, double* out) {
        kernels().transfer_errors_sq(model.both_ways(), points, out);
    }
    static void msac_scores(const Model& model, const Columns<double>& points, double max_error_sq, float* out) {
        kernels().homography_scores(model.both_ways(), points, max_error_sq, out);
    }
    template <class Points>
    static void rough_scores(const Model& model, const Points& points, double max_error_sq, float* out) {
        msac_scores(model, points.columns(), max_error_sq, out);
    }
    static void top(const std::vector<Model>& models, const Columns<float>& points, double max_error_sq, int k,
                    int* index, double* totals) {
        std::vector<TwoWayHomography> both;
        for (const Model& model : models) both.push_back(model.both_ways());
        kernels().top_homographies(both.data(), static_cast<int>(both.size()), points, max_error_sq, k, index, totals);
    }
    static Model settled(const Manifold& at) { return at; }
};

// Rows [R | t] of relative poses of omnidirectional rays.
struct RayPoses {
    static constexpr int kDimensions = 2, kColumns = 4;
    using Model = RayManifold;
    using Manifold = RayManifold;
    static Model read(const double* from) { return Model(read_pose(from)); }
    static void write(const Model& model, double* to) { write_pose(model.pose(), to); }
    static Model model_of(const Manifold& manifold) { return manifold; }
    static void residuals_sq(const Model& model, const Columns<double>& points, double* out) {
        ray_residuals_sq(model, points, out);
    }
    static void msac_scores(const Model& model, const Columns<double>& points, double max_error_sq, float* out) {
        ray_scores(model, points, max_error_sq, out);
    }
    template <class Points>
    static void rough_scores(const Model& model, const Points& points, double max_error_sq, float* out) {
        msac_scores(model, points.columns(), max_error_sq, out);
    }
    static void top(const std::vector<Model>& models, const Columns<float>& points, double max_error_sq, int k,
                    int* index, double* totals) {
        std::vector<double> all;
        for (const Model& model : models) all.push_back(ray_consensus(model, points, max_error_sq));
        const std::vector<int> order = largest_first(all);
        for (int i = 0; i < k; ++i) totals[i] = all[index[i] = order[i]];
    }
    static Model settled(const Manifold& at) {
        return Model({rotation_near(at.pose().rotation), at.pose().translation});
    }
};

// x = R X + t for 3D points, measured by the distance in the image. Rows [R | t] or, with the intrinsics of the
// camera, [R | t | a | b].
template <int kRowLength, int kDegrees>
struct Absolutes {
    static constexpr int kDimensions = 3, kColumns = kRowLength;
    using Model = AbsolutePose;
    using Manifold = AbsoluteManifold<kDegrees>;
    static Model read(const double* from) { return read_absolute_pose(from, kColumns); }
    static void write(const Model& model, double* to) { write_absolute_pose(model, kColumns, to); }
    static Model model_of(const Manifold& manifold) { return manifold.model(); }
    static void residuals_sq(const Model& model, const Columns<double>& points, double* out) {
        kernels().reprojection_errors_sq(model.projection(), points, out);
    }
    static void msac_scores(const Model& model, const Columns<double>& points, double max_error_sq, float* out) {
        kernels().reprojection_scores(model.projection(), points, max_error_sq, out);
    }
    template <class Points>
    static void rough_scores(const Model& model, const Points& points, double max_error_sq, float* out) {
        kernels().rough_reprojection_scores(model.projection(), points.single_columns(), max_error_sq, out);
    }
    static void top(const std::vector<Model>& models, const Columns<float>& points, double max_error_sq, int k,
                    int* index, double* totals) {
        std::vector<Projection> projections;
        for (const Model& model : models) projections.push_back(model.projection());
        kernels().top_projections(projections.data(), static_cast<int>(projections.size()), points, max_error_sq, k,
                                  index, totals);
    }
    static Model settled(const Manifold& at) {
        Model model = at.model();
        model.pose.rotation = rotation_near(model.pose.rotation);
        return model;
    }
};

using AbsolutePoses = Absolutes<4, kAbsoluteDof>;
using AbsoluteFocalPoses = Absolutes<6, kAbsoluteFocalDof>;

}  // namespace caransac

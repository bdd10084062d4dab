// Operations on models, the same for every kind: score, rank, refine, differentiate.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "deviations.h"
#include "model_arrays.h"
#include "plane_poses.h"
#include "regions.h"
#include "round.h"

namespace caransac {
namespace {

using namespace nb::literals;

// Returns one row of n numbers per model: fill(model, columns, out) writes padded(n) of them. The padding of a row is
// overwritten by the next row; the last row has extra room.
template <class Kind, class Real, class Fill>
Out<Real> rows(const Models<Kind>& models, const Correspondences& correspondences, Fill fill) {
    require_dimensions(correspondences, Kind::kDimensions);
    const size_t m = count_of(models.shape(0)), n = correspondences.size();
    Buffer<Real> result(m * n + kPadding);
    {
        LockRelease release;
        for (size_t i = 0; i < m; ++i)
            fill(model_at<Kind>(models, i), correspondences.columns(), result.data() + i * n);
    }
    return std::move(result).to_numpy({m, n});
}

template <class Kind>
Out<double> residuals_sq(const Models<Kind>& models, const Correspondences& correspondences) {
    return rows<Kind, double>(
        models, correspondences,
        [](const auto& model, const Columns<double>& points, double* out) { Kind::residuals_sq(model, points, out); });
}

template <class Kind>
Out<float> msac_scores(const Models<Kind>& models, const Correspondences& correspondences, double max_error) {
    require(max_error > 0, "max_error must be positive");
    return rows<Kind, float>(models, correspondences,
                             [&](const auto& model, const Columns<double>& points, float* out) {
                                 Kind::msac_scores(model, points, max_error * max_error, out);
                             });
}

template <class Kind>
Out<double> spread_consensus_of(const Models<Kind>& models, const Correspondences& correspondences, double max_error,
                                const Regions& regions) {
    require(max_error > 0, "max_error must be positive");
    require(regions.size() == correspondences.size(), "regions must be those of the correspondences");
    require_dimensions(correspondences, Kind::kDimensions);
    const size_t m = count_of(models.shape(0));
    std::vector<double> totals;
    {
        LockRelease release;
        totals = spread_consensus<Kind>(read_models<Kind>(models), correspondences, max_error, regions);
    }
    return to_numpy(std::move(totals), {m});
}

Out<double> positive_depths(const Models<Poses>& poses, const Correspondences& correspondences) {
    return rows<Poses, double>(poses, correspondences,
                               [](const Pose& pose, const Columns<double>& points, double* out) {
                                   kernels().positive_depths(rays_of(pose), points, out);
                               });
}

template <class Kind>
Out<int> top_models(const Models<Kind>& models, const Correspondences& correspondences, double max_error, int k) {
    require(max_error > 0, "max_error must be positive");
    require(k > 0, "k must be positive");
    require_dimensions(correspondences, Kind::kDimensions);
    count_of(models.shape(0));
    std::vector<int> index;
    {
        LockRelease release;
        index = top_of<Kind>(read_models<Kind>(models), correspondences, max_error, k);
    }
    const size_t size = index.size();
    return to_numpy(std::move(index), {size});
}

template <class Kind>
Out<double> promising_models(const Models<Kind>& models, const Correspondences& correspondences, double max_error,
                             int count, const RefineOptions& options) {
    require(max_error > 0, "max_error must be positive");
    require(count > 0, "count must be positive");
    require_dimensions(correspondences, Kind::kDimensions);
    count_of(models.shape(0));
    std::vector<typename Kind::Model> kept;
    {
        LockRelease release;
        kept = promising<Kind>(read_models<Kind>(models), correspondences, max_error, count, options);
    }
    return write_models<Kind>(kept);
}

template <class Kind>
Out<double> most_distinct_models(const Models<Kind>& models, const Correspondences& correspondences, double max_error,
                                 const Regions& regions, int count, double same) {
    require(max_error > 0, "max_error must be positive");
    require(count > 0, "count must be positive");
    require(regions.size() == correspondences.size(), "regions must be those of the correspondences");
    require_dimensions(correspondences, Kind::kDimensions);
    count_of(models.shape(0));
    std::vector<typename Kind::Model> kept;
    {
        LockRelease release;
        kept = most_distinct<Kind>(read_models<Kind>(models), correspondences, max_error, regions, count, same);
    }
    return write_models<Kind>(kept);
}

template <class Kind>
Out<double> mean_of_agreeing_poses(const Models<Kind>& poses, const Correspondences& correspondences, double max_error,
                                   const Regions& regions, double reach, double exponent) {
    require(max_error > 0, "max_error must be positive");
    require(count_of(poses.shape(0)) > 0, "models must not be empty");
    require(regions.size() == correspondences.size(), "regions must be those of the correspondences");
    require_dimensions(correspondences, Kind::kDimensions);
    Buffer<double> mean(3 * Kind::kColumns);
    {
        LockRelease release;
        std::vector<Pose> own;
        for (size_t i = 0; i < poses.shape(0); ++i) own.push_back(read_pose(poses.data() + 3 * Kind::kColumns * i));
        write_pose(mean_of_agreeing<Kind>(own, correspondences, max_error, regions, reach, exponent), mean.data());
    }
    return std::move(mean).to_numpy({3, Kind::kColumns});
}

// Number of points that are closer to a model than outliers would be, and their median distance.
template <class Kind>
std::pair<double, double> right_matches_of(const ModelIn<Kind>& model, const Correspondences& correspondences,
                                           double near, int dimensions) {
    require(near > 0, "near must be positive");
    require(dimensions == 1 || dimensions == 2, "dimensions must be 1 or 2");
    require_dimensions(correspondences, Kind::kDimensions);
    LockRelease release;
    const auto found = right_matches(distances<Kind>(Kind::read(model.data()), correspondences), near, dimensions);
    return {found.count, found.median};
}

// Copies weights before it checks them, so that nobody can change them in between.
std::vector<double> checked_weights(const Numbers& weights, const Correspondences& correspondences) {
    require(weights.shape(0) == static_cast<size_t>(correspondences.size()),
            "weights must have one entry for every correspondence");
    std::vector<double> own(weights.data(), weights.data() + weights.size());
    require(std::all_of(own.begin(), own.end(), [](double w) { return w >= 0 && std::isfinite(w); }),
            "weights must be finite and not negative");
    return own;
}

// Refined models, and their cost (m, 2) before and after.
template <class Kind>
std::tuple<Out<double>, Out<double>> refine(const Models<Kind>& models, const Correspondences& correspondences,
                                            const RefineOptions& options, const std::optional<Numbers>& weights) {
    require_dimensions(correspondences, Kind::kDimensions);
    const size_t m = count_of(models.shape(0));
    Buffer<double> refined(m * 3 * Kind::kColumns), costs(m * 2);
    {
        LockRelease release;
        const std::vector<double> own = weights ? checked_weights(*weights, correspondences) : std::vector<double>();
        Refiner refiner(correspondences.columns(), weights ? own.data() : nullptr, options);
        for (size_t i = 0; i < m; ++i) {
            typename Kind::Model model = model_at<Kind>(models, i);
            const RefineReport report = refiner.template refine<Kind>(model);
            Kind::write(model, refined.data() + 3 * Kind::kColumns * i);
            costs.data()[2 * i] = report.initial_cost;
            costs.data()[2 * i + 1] = report.cost;
        }
    }
    return {std::move(refined).to_numpy({m, 3, Kind::kColumns}), std::move(costs).to_numpy({m, 2})};
}

// Information of weighted points about the degrees of freedom of a model, for unit noise: (dof, dof).
template <class Kind>
Out<double> information(const ModelIn<Kind>& model, const Correspondences& correspondences, const Numbers& weights) {
    using Manifold = typename Kind::Manifold;
    constexpr size_t kDof = Manifold::kDof;
    require_dimensions(correspondences, Kind::kDimensions);
    Buffer<double> result(kDof * kDof);
    {
        LockRelease release;
        const std::vector<double> own = checked_weights(weights, correspondences);
        const Refiner refiner(correspondences.columns(), own.data(), RefineOptions());
        Eigen::Map<Eigen::Matrix<double, kDof, kDof>>{result.data()} =
            refiner.information(Manifold(Kind::read(model.data())));
    }
    return std::move(result).to_numpy({kDof, kDof});
}

template <int kSize>
using Square = In<double, Dim<kSize>, Dim<kSize>>;

// Largest deviation of the model's output, with all points and without the most influential ones.
template <class Kind>
std::pair<double, double> outcome_deviations(const ModelIn<Kind>& model, const Correspondences& correspondences,
                                             const Numbers& weights,
                                             const In<double, Dim<Kind::Manifold::kDof>, Any>& rates, double variance,
                                             const Square<Kind::Manifold::kDof>& prior, int dropped) {
    require(variance > 0, "variance must be positive");
    require(dropped >= 0, "dropped must not be negative");
    require(rates.shape(1) > 0, "rates must have a column");
    require_dimensions(correspondences, Kind::kDimensions);
    LockRelease release;
    const typename Kind::Manifold at(Kind::read(model.data()));
    const Eigen::Map<const Rates> moved(rates.data(), Kind::Manifold::kDof, static_cast<Eigen::Index>(rates.shape(1)));
    const Prior added = Eigen::Map<const Prior>(prior.data(), Kind::Manifold::kDof, Kind::Manifold::kDof);
    const Deviations found = deviations(at, correspondences.columns(), checked_weights(weights, correspondences), moved,
                                        variance, added, dropped);
    return {found.all, found.supported};
}

// Change (dof) of a model's degrees of freedom when its points move.
template <class Kind>
Out<double> response_to(const ModelIn<Kind>& model, const Correspondences& correspondences,
                        const Correspondences& moved, const Numbers& weights, double variance,
                        const Square<Kind::Manifold::kDof>& prior) {
    constexpr size_t kDof = Kind::Manifold::kDof;
    require(variance > 0, "variance must be positive");
    require_dimensions(correspondences, Kind::kDimensions);
    require_dimensions(moved, Kind::kDimensions);
    require(moved.size() == correspondences.size(), "moved must have as many points as the correspondences");
    Buffer<double> result(kDof);
    {
        LockRelease release;
        const typename Kind::Manifold at(Kind::read(model.data()));
        const Prior added = Eigen::Map<const Prior>(prior.data(), kDof, kDof);
        Eigen::Map<Eigen::VectorXd>(result.data(), kDof) = response(
            at, correspondences.columns(), moved.columns(), checked_weights(weights, correspondences), variance, added);
    }
    return std::move(result).to_numpy({kDof});
}

// Signed residuals (n) and their derivatives (n x dof) with respect to the degrees of freedom.
template <class Kind>
std::tuple<Out<double>, Out<double>> jacobian(const ModelIn<Kind>& model, const Correspondences& correspondences) {
    using Manifold = typename Kind::Manifold;
    require_dimensions(correspondences, Kind::kDimensions);
    const size_t n = correspondences.size();
    Buffer<double> residuals(n), derivatives(n * Manifold::kDof);
    {
        LockRelease release;
        const Manifold at(Kind::read(model.data()));
        using Parameters = Eigen::Matrix<double, Eigen::Dynamic, Manifold::kDof, Eigen::RowMajor>;
        Eigen::Map<Parameters>(derivatives.data(), n, Manifold::kDof) =
            residual_slopes(at, correspondences.columns(), residuals.data());
    }
    return {std::move(residuals).to_numpy({n}), std::move(derivatives).to_numpy({n, Manifold::kDof})};
}

// Differences (n x 2) in the image and their derivatives (n x 2 x dof) with respect to the degrees of freedom.
template <class Kind>
std::tuple<Out<double>, Out<double>> reprojection_jacobian(const ModelIn<Kind>& model,
                                                           const Correspondences& correspondences) {
    constexpr size_t kDof = Kind::Manifold::kDof;
    require_dimensions(correspondences, Kind::kDimensions);
    const size_t n = correspondences.size();
    Buffer<double> residuals(n * 2), derivatives(n * 2 * kDof);
    {
        LockRelease release;
        kernels().reprojection_jacobian(Kind::read(model.data()).projection(), kDof, correspondences.columns(),
                                        residuals.data(), derivatives.data());
    }
    return {std::move(residuals).to_numpy({n, 2}), std::move(derivatives).to_numpy({n, 2, kDof})};
}

Out<double> plane_poses(const ModelIn<Homographies>& model, const Correspondences& correspondences) {
    std::vector<Pose> poses;
    {
        LockRelease release;
        poses = poses_from_homography(Eigen::Map<const Matrix3>(model.data()), correspondences.columns());
    }
    return write_models<Poses>(poses);
}

// Models after steps (..., dof).
template <class Kind>
Out<double> retract(const ModelIn<Kind>& model, const nb::ndarray<const double, nb::c_contig, nb::device::cpu>& steps) {
    using Manifold = typename Kind::Manifold;
    const size_t last = steps.ndim() - 1;
    require(steps.ndim() > 0 && steps.shape(last) == Manifold::kDof,
            "steps must have a column for each degree of freedom");
    const size_t k = count_of(steps.size() / Manifold::kDof);
    Buffer<double> moved(k * 3 * Kind::kColumns);
    {
        LockRelease release;
        const Manifold at(Kind::read(model.data()));
        for (size_t i = 0; i < k; ++i) {
            const Eigen::Map<const typename Manifold::Delta> step(steps.data() + i * Manifold::kDof);
            Kind::write(Kind::model_of(at.retract(step)), moved.data() + i * 3 * Kind::kColumns);
        }
    }
    std::vector<size_t> shape;
    for (size_t i = 0; i < last; ++i) shape.push_back(steps.shape(i));
    shape.insert(shape.end(), {3, Kind::kColumns});
    return std::move(moved).to_numpy(shape);
}

template <class Kind>
nb::class_<Kind> bind_kind(nb::module_& m, const char* name, const char* doc) {
    nb::class_<Kind> kind(m, name, doc);
    kind.attr("columns") = Kind::kColumns;
    kind.attr("degrees_of_freedom") = Kind::Manifold::kDof;
    return kind.def_static("residuals_sq", &residuals_sq<Kind>, "models"_a, "correspondences"_a)
        .def_static("msac_scores", &msac_scores<Kind>, "models"_a, "correspondences"_a, "max_error"_a)
        .def_static("spread_consensus", &spread_consensus_of<Kind>, "models"_a, "correspondences"_a, "max_error"_a,
                    "regions"_a)
        .def_static("top", &top_models<Kind>, "models"_a, "correspondences"_a, "max_error"_a, "k"_a)
        .def_static("promising", &promising_models<Kind>, "models"_a, "correspondences"_a, "max_error"_a, "count"_a,
                    "options"_a)
        .def_static("most_distinct", &most_distinct_models<Kind>, "models"_a, "correspondences"_a, "max_error"_a,
                    "regions"_a, "count"_a, "same"_a)
        .def_static("right_matches", &right_matches_of<Kind>, "model"_a, "correspondences"_a, "near"_a, "dimensions"_a)
        .def_static("refine", &refine<Kind>, "models"_a, "correspondences"_a, "options"_a,
                    "weights"_a.none() = nb::none())
        .def_static("information", &information<Kind>, "model"_a, "correspondences"_a, "weights"_a)
        .def_static("outcome_deviations", &outcome_deviations<Kind>, "model"_a, "correspondences"_a, "weights"_a,
                    "rates"_a, "variance"_a, "prior"_a, "dropped"_a)
        .def_static("retract", &retract<Kind>, "model"_a, "steps"_a);
}

// Kinds whose residual is a single number also provide its derivatives.
template <class Kind>
nb::class_<Kind> bind_epipolar(nb::module_& m, const char* name, const char* doc) {
    return bind_kind<Kind>(m, name, doc)
        .def_static("jacobian", &jacobian<Kind>, "model"_a, "correspondences"_a)
        .def_static("response", &response_to<Kind>, "model"_a, "correspondences"_a, "moved"_a, "weights"_a,
                    "variance"_a, "prior"_a);
}

template <class Kind>
void bind_absolute(nb::module_& m, const char* name, const char* doc) {
    bind_kind<Kind>(m, name, doc).def_static("jacobian", &reprojection_jacobian<Kind>, "model"_a, "correspondences"_a);
}

}  // namespace

void bind_models(nb::module_& m) {
    bind_epipolar<Poses>(m, "Poses", "Relative poses [R | t], 3 x 4.")
        .def_static("mean_of_agreeing", &mean_of_agreeing_poses<Poses>, "models"_a, "correspondences"_a, "max_error"_a,
                    "regions"_a, "reach"_a, "exponent"_a)
        .def_static("positive_depths", &positive_depths, "models"_a, "correspondences"_a,
                    "Return 1 if a point lies in front of both cameras of a pose (m, 3, 4), else 0: (m, n).");
    bind_epipolar<FocalPoses>(m, "FocalPoses", "Relative poses and the intrinsics of both cameras, 3 x 6.");
    bind_epipolar<Fundamentals>(m, "Fundamentals", "Fundamental matrices, 3 x 3.");
    bind_epipolar<RayPoses>(m, "RayPoses", "Relative poses [R | t] of omnidirectional rays, 3 x 4.")
        .def_static("mean_of_agreeing", &mean_of_agreeing_poses<RayPoses>, "models"_a, "correspondences"_a,
                    "max_error"_a, "regions"_a, "reach"_a, "exponent"_a);
    bind_kind<Homographies>(m, "Homographies", "Homographies, 3 x 3.")
        .def_static(
            "plane_poses", &plane_poses, "model"_a, "correspondences"_a,
            "Return the poses (k, 3, 4) of a homography (3, 3) of rays, with most points in front of the camera:\n"
            "two for a plane, none for a rotation.");
    bind_absolute<AbsolutePoses>(m, "AbsolutePoses", "Absolute poses [R | t], 3 x 4.");
    bind_absolute<AbsoluteFocalPoses>(m, "AbsoluteFocalPoses",
                                      "Absolute poses and the intrinsics of their camera, 3 x 6.");
}

}  // namespace caransac

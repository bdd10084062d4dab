// The compiled module: checks shapes and ranges, releases the interpreter lock, and calls one kernel a function.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "hot/five_point.h"
#include "grid_buffer.h"
#include "hot/kernels.h"
#include "hot/polynomial.h"
#include "pose.h"
#include "refine.h"
#include "sampler.h"
#include "hot/seven_point.h"
#include "spread_consensus.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace caransac {
namespace {

template <class T, class... Shape>
using In = nb::ndarray<const T, nb::shape<Shape{}...>, nb::c_contig, nb::device::cpu>;
template <int N>
using Dim = std::integral_constant<nb::ssize_t, N>;
using Any = Dim<-1>;

using Points = In<double, Any, Dim<2>>;
using FloatRows = In<float, Any, Any>;
using Regions = In<int, Any, Any>;
using Samples5 = In<double, Any, Dim<5>, Dim<2>>;
using Samples7 = In<double, Any, Dim<7>, Dim<2>>;
using Samples = In<double, Any, Any, Dim<2>>;
using Matrix33 = In<double, Dim<3>, Dim<3>>;
using Vector3In = In<double, Dim<3>>;
using Matrices = In<double, Any, Dim<3>, Dim<3>>;
using Vectors = In<double, Any, Dim<3>>;
using Weights = In<double, Any>;
using Indices = In<int, Any>;
using Indices5 = In<int, Any, Dim<5>>;

template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

// Hands a vector's memory to numpy.
template <class T>
Out<T> to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(data, shape, owner);
}

// Memory for numpy that nobody has written to: zeros that are overwritten would cost as much as a narrow layer.
template <class T>
class Buffer {
  public:
    explicit Buffer(size_t size) : data_(new T[size]) {}
    T* data() { return data_.get(); }
    Out<T> to_numpy(std::initializer_list<size_t> shape) && {
        T* data = data_.get();
        nb::capsule owner(data_.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return Out<T>(data, shape, owner);
    }

  private:
    std::unique_ptr<T[]> data_;
};

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// The kernels count in 32 bits; arrays a hundredth of their range are a mistake anyway.
int count_of(size_t length) {
    require(length <= 20'000'000, "arrays must not have more than 20 million rows");
    return static_cast<int>(length);
}

// The columns of two (n, 2) arrays, converted once a call; `padding` fills the entries beyond n.
template <class Real>
class ColumnBuffer {
  public:
    ColumnBuffer(const Points& points1, const Points& points2, double padding) : n_(count_of(points1.shape(0))) {
        const int stride = padded(n_);
        data_.assign(4 * static_cast<size_t>(stride), static_cast<Real>(padding));
        for (int i = 0; i < n_; ++i) {
            data_[i] = static_cast<Real>(points1(i, 0));
            data_[stride + i] = static_cast<Real>(points1(i, 1));
            data_[2 * stride + i] = static_cast<Real>(points2(i, 0));
            data_[3 * stride + i] = static_cast<Real>(points2(i, 1));
        }
    }
    Columns<Real> view() const {
        const Real* data = data_.data();
        const int stride = padded(n_);
        return {data, data + stride, data + 2 * stride, data + 3 * stride, n_};
    }

  private:
    int n_;
    std::vector<Real> data_;
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void require_same_length(const Points& points1, const Points& points2) {
    require(points1.shape(0) == points2.shape(0), "points1 and points2 must have the same length");
    count_of(points1.shape(0));
}

using Solver = int (*)(const double*, const double*, int, double*, int*);

template <class Sample>
std::tuple<Out<double>, Out<int>> solve(Solver solver, int max_solutions, const Sample& x1, const Sample& x2) {
    require(x1.shape(0) == x2.shape(0), "x1 and x2 must hold the same number of samples");
    const int num_samples = count_of(x1.shape(0));
    std::vector<double> models;
    std::vector<int> sample_index;
    size_t count = 0;
    {
        nb::gil_scoped_release release;
        models.resize(static_cast<size_t>(num_samples) * max_solutions * 9);
        sample_index.resize(static_cast<size_t>(num_samples) * max_solutions);
        count = solver(x1.data(), x2.data(), num_samples, models.data(), sample_index.data());
        models.resize(count * 9);
        sample_index.resize(count);
    }
    return {to_numpy(std::move(models), {count, 3, 3}), to_numpy(std::move(sample_index), {count})};
}

std::tuple<Out<double>, Out<int>> five_point(const Samples5& x1, const Samples5& x2) {
    return solve(kernels().five_point, baseline::kFivePointMaxSolutions, x1, x2);
}

std::tuple<Out<double>, Out<int>> seven_point(const Samples7& x1, const Samples7& x2) {
    return solve(kernels().seven_point, baseline::kSevenPointMaxSolutions, x1, x2);
}

Matrix3 matrix_at(const Matrices& matrices, size_t i) { return Eigen::Map<const Matrix3>(matrices.data() + 9 * i); }
Vector3 vector_at(const Vectors& vectors, size_t i) { return Eigen::Map<const Vector3>(vectors.data() + 3 * i); }

template <class Derived>
void append(std::vector<double>& to, const Eigen::MatrixBase<Derived>& values) {
    for (int i = 0; i < values.rows(); ++i)
        for (int j = 0; j < values.cols(); ++j) to.push_back(values(i, j));
}

// Rotations, translations, and what each pose comes from.
using PoseArrays = std::tuple<Out<double>, Out<double>, Out<int>>;

struct PoseBatch {
    std::vector<double> rotations, translations;
    std::vector<int> origins;
    void add(const Pose& pose, int origin) {
        append(rotations, pose.rotation);
        append(translations, pose.translation);
        origins.push_back(origin);
    }
    PoseArrays to_arrays() && {
        const size_t count = origins.size();
        return {to_numpy(std::move(rotations), {count, 3, 3}), to_numpy(std::move(translations), {count, 3}),
                to_numpy(std::move(origins), {count})};
    }
};

PoseArrays pose_from_essential_batch(const Matrices& essentials, const Samples& x1, const Samples& x2) {
    const size_t m = count_of(essentials.shape(0)), p = x1.shape(1);
    require(p > 0, "x1 and x2 must hold at least one point a sample");
    require(x1.shape(0) == m && x2.shape(0) == m && x2.shape(1) == p,
            "x1 and x2 must hold one sample of equal size for every essential matrix");
    PoseBatch poses;
    {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < m; ++i) {
            Pose pose;
            if (pose_from_essential(matrix_at(essentials, i), x1.data() + 2 * p * i, x2.data() + 2 * p * i,
                                    static_cast<int>(p), pose))
                poses.add(pose, static_cast<int>(i));
        }
    }
    return std::move(poses).to_arrays();
}

PoseArrays five_point_poses(const Points& points1, const Points& points2, const Indices5& samples) {
    require_same_length(points1, points2);
    const int n = count_of(points1.shape(0)), num_samples = count_of(samples.shape(0));
    const int* members = samples.data();
    require(std::all_of(members, members + samples.size(), [n](int i) { return 0 <= i && i < n; }),
            "samples must be indices of points");
    PoseBatch poses;
    {
        nb::gil_scoped_release release;
        constexpr int kChunk = 64;  // samples at a time, so that what lies between the steps stays in the cache
        std::vector<double> x1(kChunk * 10), x2(kChunk * 10), models(kChunk * baseline::kFivePointMaxSolutions * 9);
        std::vector<int> sample(kChunk * baseline::kFivePointMaxSolutions);
        for (int first = 0; first < num_samples; first += kChunk) {
            const int size = std::min(kChunk, num_samples - first);
            for (int i = 0; i < 5 * size; ++i) {
                const int from = members[5 * first + i];
                std::copy_n(points1.data() + 2 * from, 2, x1.data() + 2 * i);
                std::copy_n(points2.data() + 2 * from, 2, x2.data() + 2 * i);
            }
            const int count = kernels().five_point(x1.data(), x2.data(), size, models.data(), sample.data());
            for (int i = 0; i < count; ++i) {
                Pose pose;
                const int at = 10 * sample[i];
                if (pose_from_essential(Eigen::Map<const Matrix3>(models.data() + 9 * i), x1.data() + at,
                                        x2.data() + at, 5, pose))
                    poses.add(pose, first + sample[i]);
            }
        }
    }
    return std::move(poses).to_arrays();
}

void require_paired(const Matrices& rotations, const Vectors& translations) {
    require(rotations.shape(0) == translations.shape(0), "rotations and translations must have the same length");
}

// One 3 x 3 matrix per pose.
template <class Convert>
Out<double> matrices_from_poses(const Matrices& rotations, const Vectors& translations, Convert convert) {
    require_paired(rotations, translations);
    const size_t m = rotations.shape(0);
    std::vector<double> result(9 * m);
    {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < m; ++i)
            Eigen::Map<Matrix3>(result.data() + 9 * i) = convert({matrix_at(rotations, i), vector_at(translations, i)});
    }
    return to_numpy(std::move(result), {m, 3, 3});
}

Out<double> essential_from_pose_batch(const Matrices& rotations, const Vectors& translations) {
    return matrices_from_poses(rotations, translations, [](const Pose& pose) { return essential_from_pose(pose); });
}

Out<double> fundamental_from_pose_batch(const Matrices& rotations, const Vectors& translations, const Matrix33& camera1,
                                        const Matrix33& camera2) {
    const Matrix3 k1 = Eigen::Map<const Matrix3>(camera1.data()), k2 = Eigen::Map<const Matrix3>(camera2.data());
    return matrices_from_poses(rotations, translations, [&](const Pose& pose) {
        return fundamental_from_essential(essential_from_pose(pose), k1, k2);
    });
}

// One row of n numbers per model: row(i, columns, out) fills padded(n) of them.
template <class Real, class Row>
Out<Real> rows(size_t m, const Points& points1, const Points& points2, Row row) {
    require_same_length(points1, points2);
    const size_t n = points1.shape(0);
    Buffer<Real> result(m * n);
    {
        nb::gil_scoped_release release;
        const ColumnBuffer<double> points(points1, points2, kNaN);
        std::vector<Real> padded_row(padded(static_cast<int>(n)));
        for (size_t i = 0; i < m; ++i) {
            row(i, points.view(), padded_row.data());
            std::copy_n(padded_row.data(), n, result.data() + i * n);
        }
    }
    return std::move(result).to_numpy({m, n});
}

Out<double> residuals_sq(const Matrices& models, const Points& points1, const Points& points2) {
    return rows<double>(models.shape(0), points1, points2, [&](size_t i, const Columns<double>& points, double* out) {
        kernels().residuals_sq(models.data() + 9 * i, points, out);
    });
}

Out<double> positive_depths(const Matrices& rotations, const Vectors& translations, const Points& points1,
                            const Points& points2) {
    require_paired(rotations, translations);
    return rows<double>(
        rotations.shape(0), points1, points2, [&](size_t i, const Columns<double>& points, double* out) {
            kernels().positive_depths(rotations.data() + 9 * i, translations.data() + 3 * i, points, out);
        });
}

Out<float> msac_scores(const Matrices& models, const Points& points1, const Points& points2, double max_error_sq) {
    require(max_error_sq > 0, "max_error_sq must be positive");
    return rows<float>(models.shape(0), points1, points2, [&](size_t i, const Columns<double>& points, float* out) {
        kernels().msac_scores(models.data() + 9 * i, points, max_error_sq, out);
    });
}

Out<float> pose_scores(const Matrices& rotations, const Vectors& translations, const Points& points1,
                       const Points& points2, double max_error_sq) {
    require_paired(rotations, translations);
    require(max_error_sq > 0, "max_error_sq must be positive");
    return rows<float>(rotations.shape(0), points1, points2, [&](size_t i, const Columns<double>& points, float* out) {
        const Pose pose{matrix_at(rotations, i), vector_at(translations, i)};
        kernels().pose_scores(essential_from_pose(pose).data(), pose.rotation.data(), pose.translation.data(), points,
                              max_error_sq, out);
    });
}

Out<double> spread_consensus_batch(const FloatRows& scores, const Regions& regions, int num_regions) {
    const size_t m = scores.shape(0), n = scores.shape(1), images = regions.shape(0);
    require(regions.shape(1) == n, "regions must have one entry for every point");
    require(num_regions > 0, "num_regions must be positive");
    for (size_t i = 0; i < images * n; ++i)
        require(0 <= regions.data()[i] && regions.data()[i] < num_regions, "regions must be below num_regions");
    std::vector<double> result(m);
    {
        nb::gil_scoped_release release;
        spread_consensus(scores.data(), count_of(m), count_of(n), regions.data(), count_of(images), num_regions,
                         result.data());
    }
    return to_numpy(std::move(result), {m});
}

std::tuple<Out<int>, Out<double>> top_models(const Matrices& models, const Points& points1, const Points& points2,
                                             double max_error_sq, int k) {
    require_same_length(points1, points2);
    require(max_error_sq > 0, "max_error_sq must be positive");
    require(k > 0, "k must be positive");
    const int m = count_of(models.shape(0));
    k = std::min(k, m);
    std::vector<int> index(k);
    std::vector<double> total(k);
    size_t count = 0;
    {
        nb::gil_scoped_release release;
        const ColumnBuffer<float> points(points1, points2, kNaN);
        if (k > 0)
            count = kernels().top_models(models.data(), m, points.view(), max_error_sq, k, index.data(), total.data());
        index.resize(count);
        total.resize(count);
    }
    return {to_numpy(std::move(index), {count}), to_numpy(std::move(total), {count})};
}

const double* weights_data(const std::optional<Weights>& weights, const Points& points1) {
    if (!weights) return nullptr;
    require(weights->shape(0) == points1.shape(0), "weights must have one entry for every point");
    const double* data = weights->data();
    require(std::all_of(data, data + weights->shape(0), [](double w) { return w >= 0 && std::isfinite(w); }),
            "weights must be finite and not negative");
    return data;
}

RefineOptions refine_options(Loss loss, double loss_scale, double max_residual_sq, int max_steps, int max_points,
                             double min_decrease, bool single_precision) {
    require(loss_scale > 0, "loss_scale must be positive");
    require(max_residual_sq >= 0, "max_residual_sq must not be negative");
    require(max_steps >= 0, "max_steps must not be negative");
    require(min_decrease >= 0, "min_decrease must not be negative");
    require(max_points >= 0, "max_points must not be negative");
    return {loss,
            loss_scale,
            max_residual_sq,
            max_steps,
            max_points,
            min_decrease,
            single_precision ? Precision::kSingle : Precision::kDouble};
}

// Costs of a batch of refinements, and the two arrays Python sees of them.
struct CostBatch {
    std::vector<double> initial, final;
    void add(const RefineReport& report) {
        initial.push_back(report.initial_cost);
        final.push_back(report.cost);
    }
    Out<double> to_array() && {
        const size_t count = initial.size();
        std::vector<double> both;
        for (size_t i = 0; i < count; ++i) both.insert(both.end(), {initial[i], final[i]});
        return to_numpy(std::move(both), {count, 2});
    }
};

std::tuple<Out<double>, Out<double>, Out<double>> refine_pose_batch(
    const Matrices& rotations, const Vectors& translations, const Points& points1, const Points& points2,
    const std::optional<Weights>& weights, Loss loss, double loss_scale, double max_residual_sq, int max_steps,
    int max_points, double min_decrease, bool single_precision) {
    require_same_length(points1, points2);
    require_paired(rotations, translations);
    const RefineOptions options =
        refine_options(loss, loss_scale, max_residual_sq, max_steps, max_points, min_decrease, single_precision);
    const double* w = weights_data(weights, points1);
    const size_t m = rotations.shape(0);
    std::vector<double> refined_rotations, refined_translations;
    CostBatch costs;
    {
        nb::gil_scoped_release release;
        Refiner refiner(ColumnBuffer<double>(points1, points2, 0).view(), w, options);
        for (size_t i = 0; i < m; ++i) {
            Pose pose{matrix_at(rotations, i), vector_at(translations, i)};
            costs.add(refiner.refine(pose));
            append(refined_rotations, pose.rotation);
            append(refined_translations, pose.translation);
        }
    }
    return {to_numpy(std::move(refined_rotations), {m, 3, 3}), to_numpy(std::move(refined_translations), {m, 3}),
            std::move(costs).to_array()};
}

std::tuple<Out<double>, Out<double>> refine_fundamental_batch(const Matrices& models, const Points& points1,
                                                              const Points& points2,
                                                              const std::optional<Weights>& weights, Loss loss,
                                                              double loss_scale, double max_residual_sq, int max_steps,
                                                              int max_points, double min_decrease,
                                                              bool single_precision) {
    require_same_length(points1, points2);
    const RefineOptions options =
        refine_options(loss, loss_scale, max_residual_sq, max_steps, max_points, min_decrease, single_precision);
    const double* w = weights_data(weights, points1);
    const size_t m = models.shape(0);
    std::vector<double> refined;
    CostBatch costs;
    {
        nb::gil_scoped_release release;
        Refiner refiner(ColumnBuffer<double>(points1, points2, 0).view(), w, options);
        for (size_t i = 0; i < m; ++i) {
            Matrix3 model = matrix_at(models, i);
            costs.add(refiner.refine(model));
            append(refined, model);
        }
    }
    return {to_numpy(std::move(refined), {m, 3, 3}), std::move(costs).to_array()};
}

// Signed residuals (n) and their derivatives (n x dof) by a manifold's parameters.
template <class Manifold>
std::tuple<Out<double>, Out<double>> jacobian(const Manifold& at, const Points& points1, const Points& points2) {
    require_same_length(points1, points2);
    const size_t n = points1.shape(0);
    std::vector<double> residual(n), by_entries(9 * n), result;
    {
        nb::gil_scoped_release release;
        const ColumnBuffer<double> points(points1, points2, 0);
        kernels().residual_jacobian(at.matrix().data(), points.view(), residual.data(), by_entries.data());
        using Entries = Eigen::Matrix<double, Eigen::Dynamic, 9, Eigen::RowMajor>;
        using Parameters = Eigen::Matrix<double, Eigen::Dynamic, Manifold::kDof, Eigen::RowMajor>;
        result.resize(n * Manifold::kDof);
        Eigen::Map<Parameters>(result.data(), n, Manifold::kDof) =
            Eigen::Map<const Entries>(by_entries.data(), n, 9) * at.jacobian();
    }
    return {to_numpy(std::move(residual), {n}), to_numpy(std::move(result), {n, static_cast<size_t>(Manifold::kDof)})};
}

PoseManifold pose_manifold(const Matrix33& rotation, const Vector3In& translation) {
    return PoseManifold({Eigen::Map<const Matrix3>(rotation.data()), Eigen::Map<const Vector3>(translation.data())});
}

FundamentalManifold fundamental_manifold(const Matrix33& model) {
    return FundamentalManifold(Matrix3(Eigen::Map<const Matrix3>(model.data())));
}

Out<double> matrix_to_numpy(const Matrix3& matrix) {
    return to_numpy(std::vector<double>(matrix.data(), matrix.data() + 9), {3, 3});
}

std::tuple<Out<double>, Out<double>> retract_pose(const Matrix33& rotation, const Vector3In& translation,
                                                  const In<double, Dim<5>>& delta) {
    const Pose pose =
        pose_manifold(rotation, translation).retract(Eigen::Map<const PoseManifold::Delta>(delta.data())).pose();
    return {matrix_to_numpy(pose.rotation),
            to_numpy(std::vector<double>(pose.translation.data(), pose.translation.data() + 3), {3})};
}

Out<double> retract_fundamental(const Matrix33& model, const In<double, Dim<7>>& delta) {
    return matrix_to_numpy(
        fundamental_manifold(model).retract(Eigen::Map<const FundamentalManifold::Delta>(delta.data())).matrix());
}

// Draws with draw(out) into a (count, size) array.
template <class Draw>
Out<int> samples(int count, int size, size_t pool_size, Draw draw) {
    require(count >= 0, "count must not be negative");
    require(size > 0 && static_cast<size_t>(size) <= pool_size, "size must be positive and at most the pool's size");
    count_of(pool_size);
    std::vector<int> result;
    {
        nb::gil_scoped_release release;
        result.resize(static_cast<size_t>(count) * size);
        draw(result.data());
    }
    return to_numpy(std::move(result), {static_cast<size_t>(count), static_cast<size_t>(size)});
}

Out<int> sample_uniform_array(const Indices& pool, int size, int count, std::uint64_t seed, std::uint64_t first) {
    return samples(count, size, pool.shape(0), [&](int* out) {
        sample_uniform(pool.data(), static_cast<int>(pool.shape(0)), size, seed, first, count, out);
    });
}

Out<int> sample_weighted_array(const Indices& pool, const Weights& weights, int size, int count, std::uint64_t seed,
                               std::uint64_t first) {
    const size_t n = pool.shape(0);
    require(weights.shape(0) == n, "weights must have one entry for every index of the pool");
    return samples(count, size, n, [&](int* out) {
        std::vector<double> cumulative(n);
        double total = 0;
        int positive = 0;
        for (size_t i = 0; i < n; ++i) {
            require(weights(i) >= 0 && std::isfinite(weights(i)), "weights must be finite and not negative");
            const double before = total;
            cumulative[i] = total += weights(i);
            positive += total > before;
        }
        require(positive >= size, "at least size weights must be positive");
        sample_weighted(pool.data(), cumulative.data(), static_cast<int>(n), size, seed, first, count, out);
    });
}

Out<int> sample_prosac_array(const Indices& pool, int size, int count, std::uint64_t seed, std::uint64_t first,
                             double horizon) {
    require(horizon > 0, "horizon must be positive");
    return samples(count, size, pool.shape(0), [&](int* out) {
        sample_prosac(pool.data(), static_cast<int>(pool.shape(0)), size, seed, first, count, horizon, out);
    });
}

using StridedMatrix = nb::ndarray<const float, nb::shape<-1, -1>, nb::device::cpu>;
using LayerIn =
    std::tuple<In<float, Any, Any>, In<float, Any>, Activation, bool>;  // weight, bias, activation, residual

// The panels of kPadding columns that the kernel reads, zero beyond the last column.
std::vector<float> panels(const float* matrix, size_t rows, size_t columns) {
    std::vector<float> result(rows * padded(static_cast<int>(columns)));
    for (size_t i = 0; i < rows; ++i)
        for (size_t first = 0; first < columns; first += kPadding)
            std::copy_n(matrix + i * columns + first, std::min<size_t>(kPadding, columns - first),
                        result.data() + first * rows + i * kPadding);
    return result;
}

Out<float> mlp_rows(const std::vector<StridedMatrix>& x, const std::vector<LayerIn>& layers) {
    require(!x.empty() && !layers.empty(), "x and layers must not be empty");
    const int rows = count_of(x[0].shape(0));
    std::vector<Input> inputs;
    size_t outputs = 0;
    for (const StridedMatrix& part : x) {
        require(part.shape(0) == x[0].shape(0), "all parts of x must have the same length");
        outputs += part.shape(1);
        require(outputs <= kMaxInputs, "x must not have more than 1024 columns");
        inputs.push_back({part.data(), part.stride(0), part.stride(1), static_cast<int>(part.shape(1))});
    }
    for (const auto& [weight, bias, activation, residual] : layers) {
        const size_t width = outputs;
        outputs = weight.shape(1);
        require(weight.shape(0) == width, "weight must have a row for every input of its layer");
        require(bias.shape(0) == outputs, "bias must have an entry for every column of weight");
        require(outputs >= 1 && outputs <= kMaxLayerWidth, "layers must have 1 to 128 outputs");
        require(!residual || width == outputs, "a residual layer must keep the width");
    }
    Buffer<float> result(rows * outputs);
    {
        nb::gil_scoped_release release;
        std::vector<std::vector<float>> storage;
        std::vector<Layer> packed;
        for (const auto& [weight, bias, activation, residual] : layers) {
            const size_t in = weight.shape(0), width = weight.shape(1);
            storage.push_back(panels(weight.data(), in, width));
            const float* packed_weight = storage.back().data();  // stays in place when the vector moves
            storage.push_back(panels(bias.data(), 1, width));
            packed.push_back({packed_weight, storage.back().data(), static_cast<int>(in), static_cast<int>(width),
                              activation, residual});
        }
        kernels().mlp(inputs.data(), static_cast<int>(inputs.size()), rows, packed.data(),
                      static_cast<int>(packed.size()), result.data());
    }
    return std::move(result).to_numpy({static_cast<size_t>(rows), outputs});
}

Out<float> neighbour_features_array(const Points& points1, const Points& points2, double min_distance) {
    require_same_length(points1, points2);
    const size_t n = points1.shape(0);
    Buffer<float> result(n * kNeighbourFeatures);
    {
        nb::gil_scoped_release release;
        const ColumnBuffer<double> buffer(points1, points2, 0);
        const Columns<double> p = buffer.view();
        const GridBuffer grid1(p.u1, p.v1, p.u2, p.v2, p.n), grid2(p.u2, p.v2, p.u1, p.v1, p.n);
        kernels().neighbour_features(grid1.view(), min_distance, result.data());
        kernels().neighbour_features(grid2.view(), min_distance, result.data() + kNeighbourFeaturesPerImage);
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kNeighbourFeatures)});
}

// Real roots of cubics (m, 4) or polynomials of degree ten (m, 11), constant term first: (m, degree), padded with NaN.
Out<double> real_roots(const In<double, Any, Any>& coefficients) {
    const size_t m = coefficients.shape(0), width = coefficients.shape(1);
    require(width == 4 || width == 11, "coefficients must have 4 or 11 columns");
    std::vector<double> roots(m * (width - 1), kNaN);
    for (size_t i = 0; i < m; ++i) {
        double found[10];
        const double* row = coefficients.data() + width * i;
        const int count = width == 4 ? baseline::real_roots<3>(row, found) : baseline::real_roots<10>(row, found);
        std::copy_n(found, count, roots.data() + (width - 1) * i);
    }
    return to_numpy(std::move(roots), {m, width - 1});
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Two-view geometry kernels; see caransac.kernels for the documented interface.";

    nb::enum_<Loss>(m, "Loss", "Robust loss of a squared residual.")
        .value("SQUARED", Loss::kSquared)
        .value("TRUNCATED", Loss::kTruncated)
        .value("CAUCHY", Loss::kCauchy)
        .value("HUBER", Loss::kHuber);

    nb::enum_<Activation>(m, "Activation", "What follows the affine part of a layer.")
        .value("NONE", Activation::kNone)
        .value("LEAKY_RELU", Activation::kLeakyRelu)
        .value("TANH", Activation::kTanh);

    m.def("instruction_set", [] { return kernels().instruction_set; }, "Instruction set the kernels run with.");
    m.def("mlp", &mlp_rows, "x"_a, "layers"_a);
    m.def("neighbour_features", &neighbour_features_array, "points1"_a, "points2"_a, "min_distance"_a);
    m.def("real_roots", &real_roots, "coefficients"_a);
    m.def("five_point", &five_point, "x1"_a, "x2"_a);
    m.def("five_point_poses", &five_point_poses, "points1"_a, "points2"_a, "samples"_a);
    m.def("seven_point", &seven_point, "x1"_a, "x2"_a);
    m.def("pose_from_essential", &pose_from_essential_batch, "essentials"_a, "x1"_a, "x2"_a);
    m.def("essential_from_pose", &essential_from_pose_batch, "rotations"_a, "translations"_a);
    m.def("fundamental_from_pose", &fundamental_from_pose_batch, "rotations"_a, "translations"_a, "camera1"_a,
          "camera2"_a);
    m.def("residuals_sq", &residuals_sq, "models"_a, "points1"_a, "points2"_a);
    m.def("msac_scores", &msac_scores, "models"_a, "points1"_a, "points2"_a, "max_error_sq"_a);
    m.def("pose_scores", &pose_scores, "rotations"_a, "translations"_a, "points1"_a, "points2"_a, "max_error_sq"_a);
    m.def("spread_consensus", &spread_consensus_batch, "scores"_a, "regions"_a, "num_regions"_a);
    m.def("positive_depths", &positive_depths, "rotations"_a, "translations"_a, "points1"_a, "points2"_a);
    m.def("top_models", &top_models, "models"_a, "points1"_a, "points2"_a, "max_error_sq"_a, "k"_a);
    m.def("refine_pose", &refine_pose_batch, "rotations"_a, "translations"_a, "points1"_a, "points2"_a,
          "weights"_a.none(), "loss"_a, "loss_scale"_a, "max_residual_sq"_a, "max_steps"_a, "max_points"_a,
          "min_decrease"_a, "single_precision"_a);
    m.def("refine_fundamental", &refine_fundamental_batch, "models"_a, "points1"_a, "points2"_a, "weights"_a.none(),
          "loss"_a, "loss_scale"_a, "max_residual_sq"_a, "max_steps"_a, "max_points"_a, "min_decrease"_a,
          "single_precision"_a);
    m.def(
        "pose_jacobian",
        [](const Matrix33& rotation, const Vector3In& translation, const Points& points1, const Points& points2) {
            return jacobian(pose_manifold(rotation, translation), points1, points2);
        },
        "rotation"_a, "translation"_a, "points1"_a, "points2"_a);
    m.def(
        "fundamental_jacobian",
        [](const Matrix33& model, const Points& points1, const Points& points2) {
            return jacobian(fundamental_manifold(model), points1, points2);
        },
        "model"_a, "points1"_a, "points2"_a);
    m.def("retract_pose", &retract_pose, "rotation"_a, "translation"_a, "delta"_a);
    m.def("retract_fundamental", &retract_fundamental, "model"_a, "delta"_a);
    m.def("sample_uniform", &sample_uniform_array, "pool"_a, "size"_a, "count"_a, "seed"_a, "first"_a);
    m.def("sample_weighted", &sample_weighted_array, "pool"_a, "weights"_a, "size"_a, "count"_a, "seed"_a, "first"_a);
    m.def("sample_prosac", &sample_prosac_array, "pool"_a, "size"_a, "count"_a, "seed"_a, "first"_a, "horizon"_a);
}

}  // namespace caransac

// Minimal solvers on batches of samples, which are indices of correspondences.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>

#include "arrays.h"
#include "hot/five_point.h"
#include "hot/kernels.h"
#include "hot/real_roots.h"
#include "hot/seven_point.h"
#include "pose.h"

namespace caransac {
namespace {

using namespace nb::literals;

constexpr int kChunk = 64;  // samples at a time, so that what lies between the steps stays in the cache

// The coordinates of up to kChunk samples of kSize points, as the solvers read them.
template <int kSize>
struct Chunk {
    double x1[kChunk * kSize * 2], x2[kChunk * kSize * 2];
    void gather(const Columns<double>& points, const int* members, int count) {
        for (int i = 0; i < count * kSize; ++i) {
            const int from = members[i];
            x1[2 * i] = points.u1[from];
            x1[2 * i + 1] = points.v1[from];
            x2[2 * i] = points.u2[from];
            x2[2 * i + 1] = points.v2[from];
        }
    }
};

// Models (m, 3, columns), and (m) the sample that each comes from.
using Solutions = std::tuple<Out<double>, Out<int>>;

// Solves all samples; `keep(model, chunk, sample, to)` appends a model to what is returned, or not.
template <int kSize, int kMaxSolutions, class Solver, class Keep>
Solutions solve(const Correspondences& correspondences, const In<int, Any, Dim<kSize>>& samples, Solver solver,
                size_t columns, Keep keep) {
    const int num_samples = count_of(samples.shape(0));
    std::vector<double> kept;
    std::vector<int> origins;
    {
        nb::gil_scoped_release release;
        const std::vector<int> members =
            checked_indices(samples, correspondences.size(), "samples must hold indices of correspondences");
        const auto chunk = std::make_unique<Chunk<kSize>>();  // not on the stack: that of some threads is small
        std::vector<double> models(kChunk * kMaxSolutions * 9);
        std::vector<int> sample(kChunk * kMaxSolutions);
        for (int first = 0; first < num_samples; first += kChunk) {
            const int size = std::min(kChunk, num_samples - first);
            chunk->gather(correspondences.columns(), members.data() + static_cast<size_t>(kSize) * first, size);
            const int count = solver(chunk->x1, chunk->x2, size, models.data(), sample.data());
            for (int i = 0; i < count; ++i)
                if (keep(models.data() + 9 * i, *chunk, sample[i], kept)) origins.push_back(first + sample[i]);
        }
    }
    const size_t count = origins.size();
    return {to_numpy(std::move(kept), {count, 3, columns}), to_numpy(std::move(origins), {count})};
}

const auto keep_matrix = [](const double* model, const auto&, int, std::vector<double>& kept) {
    kept.insert(kept.end(), model, model + 9);
    return true;
};

using Samples5 = In<int, Any, Dim<5>>;
using Samples7 = In<int, Any, Dim<7>>;

Solutions five_point(const Correspondences& correspondences, const Samples5& samples) {
    return solve<5, baseline::kFivePointMaxSolutions>(correspondences, samples, kernels().five_point, 3, keep_matrix);
}

Solutions five_point_poses(const Correspondences& correspondences, const Samples5& samples) {
    const auto keep_pose = [](const double* model, const Chunk<5>& chunk, int sample, std::vector<double>& kept) {
        Pose pose;
        const int at = 10 * sample;
        if (!pose_from_essential(Eigen::Map<const Matrix3>(model), chunk.x1 + at, chunk.x2 + at, 5, pose)) return false;
        kept.resize(kept.size() + 12);
        write_pose(pose, &kept.back() - 11);
        return true;
    };
    return solve<5, baseline::kFivePointMaxSolutions>(correspondences, samples, kernels().five_point, 4, keep_pose);
}

Solutions seven_point(const Correspondences& correspondences, const Samples7& samples) {
    return solve<7, baseline::kSevenPointMaxSolutions>(correspondences, samples, kernels().seven_point, 3, keep_matrix);
}

Solutions four_point(const Correspondences& correspondences, const In<int, Any, Dim<4>>& samples) {
    return solve<4, 1>(correspondences, samples, kernels().four_point, 3, keep_matrix);
}

// Fills rows of `roots` with the real roots of polynomials of degree N.
template <int N>
void fill_roots(const double* coefficients, size_t m, double* roots) {
    using namespace baseline;
    for (size_t first = 0; first < m; first += kDoubles) {
        Doubles p[N + 1], found[N];
        int count[kDoubles];
        for (int l = 0; l < kDoubles; ++l)
            for (int i = 0; i <= N; ++i) set_lane(p[i], l, coefficients[std::min(first + l, m - 1) * (N + 1) + i]);
        real_roots<N>(p, found, count);
        for (int l = 0; l < kDoubles && first + l < m; ++l)
            for (int r = 0; r < count[l]; ++r) roots[(first + l) * N + r] = lane(found[r], l);
    }
}

// Real roots of cubics (m, 4) or polynomials of degree ten (m, 11), constant term first: (m, degree), padded with NaN.
Out<double> real_roots(const In<double, Any, Any>& coefficients) {
    const size_t m = coefficients.shape(0), width = coefficients.shape(1);
    require(width == 4 || width == 11, "coefficients must have 4 or 11 columns");
    std::vector<double> roots;
    {
        nb::gil_scoped_release release;
        roots.assign(m * (width - 1), std::numeric_limits<double>::quiet_NaN());
        (width == 4 ? fill_roots<3> : fill_roots<10>)(coefficients.data(), m, roots.data());
    }
    return to_numpy(std::move(roots), {m, width - 1});
}

}  // namespace

void bind_solvers(nb::module_& m) {
    m.def("five_point", &five_point, "correspondences"_a, "samples"_a);
    m.def("five_point_poses", &five_point_poses, "correspondences"_a, "samples"_a);
    m.def("seven_point", &seven_point, "correspondences"_a, "samples"_a);
    m.def("four_point", &four_point, "correspondences"_a, "samples"_a);
    m.def("real_roots", &real_roots, "coefficients"_a);
}

}  // namespace caransac

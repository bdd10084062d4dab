// Minimal solvers for batches of samples; samples are indices of correspondences.
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
#include "hot/three_point.h"

namespace caransac {
namespace {

using namespace nb::literals;

constexpr int kChunk = 64;  // samples at a time, so that intermediate results stay in the cache

// Coordinates of up to kChunk samples of kSize points, in the layout of the solvers.
template <int kSize, int kDimensions>
struct Chunk {
    double x1[kChunk * kSize * 2], x2[kChunk * kSize * kDimensions];
    void gather(const Columns<double>& points, const int* members, int count) {
        for (int i = 0; i < count * kSize; ++i) {
            const int from = members[i];
            x1[2 * i] = points.u1[from];
            x1[2 * i + 1] = points.v1[from];
            x2[kDimensions * i] = points.u2[from];
            x2[kDimensions * i + 1] = points.v2[from];
            if constexpr (kDimensions == 3) x2[3 * i + 2] = points.w2[from];
        }
    }
};

// Models (m, 3, columns), and the index (m) of the sample that each comes from.
using Solutions = std::tuple<Out<double>, Out<int>>;

// Solves all samples.
template <int kSize, int kMaxSolutions, int kColumns = 3, int kDimensions = 2, class Solver>
Solutions solve(const Correspondences& correspondences, const In<int, Any, Dim<kSize>>& samples, Solver solver) {
    constexpr size_t kEntries = 3 * kColumns;
    require_dimensions(correspondences, kDimensions);
    const int num_samples = count_of(samples.shape(0));
    std::vector<double> kept;
    std::vector<int> origins;
    {
        LockRelease release;
        const std::vector<int> members =
            checked_indices(samples, correspondences.size(), "samples must be indices of correspondences");
        const auto chunk =
            std::make_unique<Chunk<kSize, kDimensions>>();  // on the heap, because some threads have small stacks
        std::vector<double> models(kChunk * kMaxSolutions * kEntries);
        std::vector<int> sample(kChunk * kMaxSolutions);
        for (int first = 0; first < num_samples; first += kChunk) {
            const int size = std::min(kChunk, num_samples - first);
            chunk->gather(correspondences.columns(), members.data() + static_cast<size_t>(kSize) * first, size);
            const int count = solver(chunk->x1, chunk->x2, size, models.data(), sample.data());
            kept.insert(kept.end(), models.data(), models.data() + kEntries * count);
            for (int i = 0; i < count; ++i) origins.push_back(first + sample[i]);
        }
    }
    const size_t count = origins.size();
    return {to_numpy(std::move(kept), {count, 3, kColumns}), to_numpy(std::move(origins), {count})};
}

using Samples5 = In<int, Any, Dim<5>>;
using Samples7 = In<int, Any, Dim<7>>;

Solutions five_point(const Correspondences& correspondences, const Samples5& samples) {
    return solve<5, baseline::kFivePointMaxSolutions>(correspondences, samples, kernels().five_point);
}

Solutions five_point_poses(const Correspondences& correspondences, const Samples5& samples) {
    return solve<5, baseline::kFivePointMaxSolutions, 4>(correspondences, samples, kernels().five_point_poses);
}

Solutions seven_point(const Correspondences& correspondences, const Samples7& samples) {
    return solve<7, baseline::kSevenPointMaxSolutions>(correspondences, samples, kernels().seven_point);
}

Solutions four_point(const Correspondences& correspondences, const In<int, Any, Dim<4>>& samples) {
    return solve<4, 1>(correspondences, samples, kernels().four_point);
}

Solutions three_point(const Correspondences& correspondences, const In<int, Any, Dim<3>>& samples) {
    return solve<3, baseline::kThreePointMaxSolutions, 4, 3>(correspondences, samples, kernels().three_point);
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
        LockRelease release;
        roots.assign(m * (width - 1), std::numeric_limits<double>::quiet_NaN());
        (width == 4 ? fill_roots<3> : fill_roots<10>)(coefficients.data(), m, roots.data());
    }
    return to_numpy(std::move(roots), {m, width - 1});
}

}  // namespace

void bind_solvers(nb::module_& m) {
    const auto samples = "samples"_a.noconvert();  // indices of another type would be converted silently
    m.def("five_point", &five_point, "correspondences"_a, samples,
          "Return the essential matrices (m, 3, 3) through samples (S, 5) of calibrated correspondences.\n\n"
          "Their Frobenius norm is sqrt(2). A sample has at most ten; a degenerate sample has none. Also return the\n"
          "sample (m,) of each matrix.");
    m.def("five_point_poses", &five_point_poses, "correspondences"_a, samples,
          "Return the poses (p, 3, 4) of `five_point` that put their sample in front of both cameras.\n\n"
          "At most one of the four poses of an essential matrix does. Also return the sample (p,) of each pose.");
    m.def("seven_point", &seven_point, "correspondences"_a, samples,
          "Return the fundamental matrices (m, 3, 3) through samples (S, 7) of correspondences.\n\n"
          "Their Frobenius norm is one. A sample has at most three; a degenerate sample has none. Also return the\n"
          "sample (m,) of each matrix.");
    m.def("four_point", &four_point, "correspondences"_a, samples,
          "Return the homographies (m, 3, 3) through samples (S, 4) of correspondences.\n\n"
          "Their Frobenius norm is one. A degenerate or impossible sample has none. Also return the sample (m,)\n"
          "of each matrix.");
    m.def("three_point", &three_point, "correspondences"_a, samples,
          "Return the absolute poses (m, 3, 4) through samples (S, 3) of 3D points and their image coordinates.\n\n"
          "x ~ R X + t, with the sample in front of the camera. A sample has at most four; a degenerate sample has\n"
          "none. Also return the sample (m,) of each pose.");
    m.def("real_roots", &real_roots, "coefficients"_a,
          "Return the distinct real roots of cubics (m, 4) or of polynomials of degree ten (m, 11).\n\n"
          "The constant term is first. The roots (m, 3) or (m, 10) have no order; the rest of a row is NaN.");
}

}  // namespace caransac

// Matches refined in photographs.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "patches.h"

namespace caransac {
namespace {

using namespace nb::literals;

// Images have any shape and kind of number.
constexpr const char* kAlignPatches =
    "def align_patches(image1: NDArray[typing.Any], image2: NDArray[typing.Any], points1: NDArray[numpy.float64], "
    "points2: NDArray[numpy.float64], maps: NDArray[numpy.float64], level: int, radius: int, max_steps: int, "
    "max_step: float, max_shift: float, min_step: float, affine_deviation: float) -> tuple[NDArray[numpy.float64], "
    "NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.bool_]]";

using Pixels = nb::ndarray<nb::ro, nb::device::cpu>;

// The image stays in the caller's memory.
Photograph photograph_of(const Pixels& image) {
    require(image.ndim() == 2 || (image.ndim() == 3 && (image.shape(2) == 1 || image.shape(2) == 3)),
            "an image must have shape (H, W), (H, W, 1) or (H, W, 3)");
    require(image.shape(0) > 0 && image.shape(1) > 0, "an image must not be empty");
    Photograph photograph{};
    if (image.dtype() == nb::dtype<std::uint8_t>()) {
        photograph.kind = GreyKind::kUint8;
    } else if (image.dtype() == nb::dtype<std::uint16_t>()) {
        photograph.kind = GreyKind::kUint16;
    } else if (image.dtype() == nb::dtype<float>()) {
        photograph.kind = GreyKind::kFloat;
    } else {
        require(image.dtype() == nb::dtype<double>(), "an image must have uint8, uint16, float32 or float64 numbers");
        photograph.kind = GreyKind::kDouble;
    }
    const auto bytes = static_cast<std::ptrdiff_t>(image.itemsize());
    photograph.data = static_cast<const std::uint8_t*>(image.data());
    photograph.height = count_of(image.shape(0));
    photograph.width = count_of(image.shape(1));
    photograph.channels = image.ndim() == 2 ? 1 : static_cast<int>(image.shape(2));
    photograph.row = image.stride(0) * bytes;
    photograph.column = image.stride(1) * bytes;
    photograph.channel = image.ndim() == 2 ? 0 : image.stride(2) * bytes;
    return photograph;
}

std::vector<PointPair> pairs_of(const Points& points1, const Points& points2) {
    require(points1.shape(0) == points2.shape(0), "points1 and points2 must have the same length");
    std::vector<PointPair> pairs(count_of(points1.shape(0)));
    for (size_t i = 0; i < pairs.size(); ++i) {
        const double *first = points1.data() + 2 * i, *second = points2.data() + 2 * i;
        pairs[i] = {first[0], first[1], second[0], second[1]};
    }
    return pairs;
}

Out<double> maps_of(const Points& points1, const Points& points2, int neighbours) {
    const std::vector<PointPair> pairs = pairs_of(points1, points2);
    Buffer<double> maps(4 * pairs.size());
    {
        LockRelease release;
        local_maps(pairs.data(), static_cast<int>(pairs.size()), neighbours, maps.data());
    }
    return std::move(maps).to_numpy({pairs.size(), 2, 2});
}

// Points (n, 2), correlations (n, 2) before and after, information (n, 2, 2), maps (n, 2, 2), aligned (n).
using Refined = std::tuple<Out<double>, Out<double>, Out<double>, Out<double>, Out<bool>>;

Refined refine(const Pixels& image1, const Pixels& image2, const Points& points1, const Points& points2,
               const In<double, Any, Dim<2>, Dim<2>>& maps, int level, int radius, int max_steps, double max_step,
               double max_shift, double min_step, double affine_deviation) {
    const Photograph first = photograph_of(image1), second = photograph_of(image2);
    const std::vector<PointPair> pairs = pairs_of(points1, points2);
    const size_t n = pairs.size();
    require(maps.shape(0) == n, "maps must have one entry for every match");
    require(level >= 0 && level <= kMaxLevel, "level must be from 0 to 3");
    require(radius >= 1 && radius <= kMaxPatchRadius, "radius must be from 1 to 10");
    const PatchOptions options{max_steps, max_step, max_shift, min_step, affine_deviation};
    Buffer<double> points(2 * n), correlations(2 * n), information(4 * n), refined_maps(4 * n);
    Buffer<bool> aligned(n);
    {
        LockRelease release;
        std::vector<RefinedMatch> refined(n);
        refine_matches(first, second, pairs.data(), maps.data(), static_cast<int>(n), level, radius, options,
                       refined.data());
        for (size_t i = 0; i < n; ++i) {
            const RefinedMatch& match = refined[i];
            points.data()[2 * i] = match.x2;
            points.data()[2 * i + 1] = match.y2;
            correlations.data()[2 * i] = match.before;
            correlations.data()[2 * i + 1] = match.after;
            const double* xx_xy_yy = match.information;
            for (int k = 0; k < 4; ++k) information.data()[4 * i + k] = xx_xy_yy[(k + 1) / 2];
            std::copy(match.map, match.map + 4, refined_maps.data() + 4 * i);
            aligned.data()[i] = match.aligned;
        }
    }
    return {std::move(points).to_numpy({n, 2}), std::move(correlations).to_numpy({n, 2}),
            std::move(information).to_numpy({n, 2, 2}), std::move(refined_maps).to_numpy({n, 2, 2}),
            std::move(aligned).to_numpy({n})};
}

}  // namespace

void bind_photographs(nb::module_& m) {
    m.def("local_maps", &maps_of, "points1"_a, "points2"_a, "neighbours"_a,
          "Return the local affine maps (n, 2, 2) from image 1 to image 2 at each match, from its nearest neighbours.");
    m.def(
        "align_patches", &refine, "image1"_a, "image2"_a, "points1"_a, "points2"_a, "maps"_a, "level"_a, "radius"_a,
        "max_steps"_a, "max_step"_a, "max_shift"_a, "min_step"_a, "affine_deviation"_a, nb::sig(kAlignPatches),
        "Align the patches around the points (n, 2) of two photographs, given local affine maps (n, 2, 2).\n"
        "A pixel of pyramid level l is the mean of 2^l x 2^l pixels. Radius and lengths are in pixels of the level.\n\n"
        "Return the moved points (n, 2) of image 2, the correlations (n, 2) before and after, the information\n"
        "(n, 2, 2) about each point, the maps (n, 2, 2), and a mask (n,) of the patches that could be compared.");
}

}  // namespace caransac

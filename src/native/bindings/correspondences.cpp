#include "correspondences.h"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "arrays.h"
#include "regions.h"
#include "spreads.h"

namespace caransac {
namespace {

using namespace nb::literals;

// A NaN would reach every kernel, and an index computed from it could lie outside any array.
bool all_finite(const double* values, int n) {
    double sum = 0;  // stays zero, and becomes NaN if an entry is not finite
    for (int i = 0; i < n; ++i) sum += 0 * values[i];
    return sum == 0;
}

bool all_finite(const Correspondences& correspondences) {
    const Columns<double> own = correspondences.columns();
    for (const double* column : {own.u1, own.v1, own.u2, own.v2, own.w2})
        if (column != nullptr && !all_finite(column, own.n)) return false;
    return true;
}

Correspondences pack(const Points& points1, const Points& points2) {
    require(points1.shape(0) == points2.shape(0), "points1 and points2 must have the same length");
    const int n = count_of(points1.shape(0));
    LockRelease release;
    Correspondences packed(points1.data(), points2.data(), n);
    const Columns<double> own = packed.columns();  // our copy; other threads can change the caller's arrays
    require(all_finite(own.u1, n) && all_finite(own.v1, n), "points1 must be finite");
    require(all_finite(own.u2, n) && all_finite(own.v2, n), "points2 must be finite");
    return packed;
}

// Points of an image, and the matching 3D points.
Correspondences pack_space(const Points& points2d, const In<double, Any, Dim<3>>& points3d) {
    require(points2d.shape(0) == points3d.shape(0), "points2d and points3d must have the same length");
    const int n = count_of(points2d.shape(0));
    LockRelease release;
    Correspondences packed(points2d.data(), points3d.data(), n, 3);
    const Columns<double> own = packed.columns();
    require(all_finite(own.u1, n) && all_finite(own.v1, n), "points2d must be finite");
    require(all_finite(packed), "points3d must be finite");
    return packed;
}

Correspondences subset(const Correspondences& self, const Indices& index) {
    count_of(index.shape(0));
    LockRelease release;
    return self.subset(checked_indices(index, self.size(), "index must be indices of correspondences"));
}

// The points (n, 2) of image 0 or 1, or the 3D points (n, 3).
Out<double> points(const Correspondences& self, int image) {
    const Columns<double> from = self.columns();
    const double* const columns[2][3] = {{from.u1, from.v1, nullptr}, {from.u2, from.v2, from.w2}};
    const size_t n = self.size(), dimensions = image == 0 ? 2 : self.dimensions();
    Buffer<double> result(dimensions * n);
    {
        LockRelease release;
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < dimensions; ++c) result.data()[dimensions * i + c] = columns[image][c][i];
    }
    return std::move(result).to_numpy({n, dimensions});
}

// One row per image: the centre, and the spread around it.
Out<double> spreads(const Correspondences& self) {
    Buffer<double> result(6);
    {
        LockRelease release;
        const Columns<double> from = self.columns();
        const Spread both[2] = {spread_of(from.u1, from.v1, from.n), spread_of(from.u2, from.v2, from.n)};
        double* to = result.data();
        for (const Spread& spread : both)
            for (const double number : {spread.centre[0], spread.centre[1], spread.size}) *to++ = number;
    }
    return std::move(result).to_numpy({2, 3});
}

Correspondences points_in_spreads(const Correspondences& self, const In<double, Dim<2>, Dim<3>>& spreads) {
    const double* from = spreads.data();
    const Spread both[2] = {{{from[0], from[1]}, from[2]}, {{from[3], from[4]}, from[5]}};
    LockRelease release;
    Correspondences moved = in_spreads(self, both);
    require(all_finite(moved), "spreads must leave the points finite");
    return moved;
}

// Normalised image coordinates of pixels. intrinsics: one row (fx, fy, cx, cy) per camera.
Correspondences calibrate(const Points& pixels1, const Points& pixels2, const In<double, Dim<2>, Dim<4>>& intrinsics) {
    double focal[4], centre[4];
    for (int c = 0; c < 4; ++c) {
        const double* row = intrinsics.data() + 4 * (c / 2);
        focal[c] = row[c % 2];
        centre[c] = row[2 + c % 2];
    }
    Correspondences points = pack(pixels1, pixels2);
    LockRelease release;
    points.map([&](int c, double value) { return (value - centre[c]) / focal[c]; });
    require(all_finite(points), "intrinsics must leave the points finite");
    return points;
}

// Pixels normalised to the order of one, the centres of both images, and the scale.
std::tuple<Correspondences, Out<double>, double> normalise(const Points& pixels1, const Points& pixels2) {
    Correspondences points = pack(pixels1, pixels2);
    Normalisation by;
    {
        LockRelease release;
        by = normalisation_of(points);
        points.map([=](int c, double value) { return (value - by.centre[c]) * by.scale; });
        require(all_finite(points), "points must stay finite when they are normalised");
    }
    Buffer<double> centres(4);
    std::copy(by.centre, by.centre + 4, centres.data());
    return {std::move(points), std::move(centres).to_numpy({2, 2}), by.scale};
}

void make_regions(Regions* self, const Correspondences& correspondences, const In<float, Any>& weights,
                  double sharpness) {
    require(sharpness >= 0 && std::isfinite(sharpness), "sharpness must be finite and not negative");
    require(weights.shape(0) == static_cast<size_t>(correspondences.size()),
            "weights must have one entry for every correspondence");
    std::vector<float> own(weights.data(), weights.data() + weights.size());
    require(std::all_of(own.begin(), own.end(), [](float w) { return w >= 0 && std::isfinite(w); }),
            "weights must be finite and not negative");
    LockRelease release;
    new (self) Regions(correspondences, std::move(own), sharpness);
}

}  // namespace

void bind_correspondences(nb::module_& m) {
    nb::class_<Correspondences>(m, "Correspondences", "Correspondences packed once for all kernels; immutable.")
        .def("__len__", &Correspondences::size)
        .def("subset", &subset, "index"_a, "Return the correspondences at the given indices.")
        .def("spreads", &spreads,
             "Return the centre of the points of each image and their spread around it, (2, 3), robust to a few\n"
             "extreme outliers.")
        .def("in_spreads", &points_in_spreads, "spreads"_a, "Return the points relative to `spreads`.")
        .def_prop_ro(
            "points1", [](const Correspondences& self) { return points(self, 0); }, nb::rv_policy::automatic)
        .def_prop_ro("points2", [](const Correspondences& self) { return points(self, 1); }, nb::rv_policy::automatic);

    m.def("pack", &pack, "points1"_a, "points2"_a,
          "Pack points (n, 2) and (n, 2), a match in each row; raise a ValueError if one is not finite.");
    m.def("pack_space", &pack_space, "points2d"_a, "points3d"_a,
          "Pack points (n, 2) of an image and the 3D points (n, 3) that they match, like `pack`.\n\n"
          "`spreads` and `in_spreads` use the first two coordinates of the centred 3D points.");
    m.def("calibrate", &calibrate, "pixels1"_a, "pixels2"_a, "intrinsics"_a,
          "Pack the normalised image coordinates of pixels (n, 2) of two cameras: rows fx, fy, cx, cy of (2, 4).");
    m.def("normalise", &normalise, "pixels1"_a, "pixels2"_a,
          "Pack (pixels - centre) * scale, which is of the order of one. Also return the centres (2, 2) and the "
          "scale.\n\n"
          "Each image is centred by medians, and both have the same scale.");

    nb::class_<Regions>(m, "Regions", "The cell of every correspondence in a grid over each image; immutable.")
        .def("__init__", &make_regions, "correspondences"_a, "weights"_a, "sharpness"_a)
        .def_prop_ro(
            "cells",
            [](const Regions& self) {
                const size_t n = self.size();
                std::vector<int> both(self.cells(0), self.cells(0) + n);
                both.insert(both.end(), self.cells(1), self.cells(1) + n);
                return to_numpy(std::move(both), {2, n});
            },
            nb::rv_policy::automatic);
}

}  // namespace caransac

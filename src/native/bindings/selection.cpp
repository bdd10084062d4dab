// Selection of points for more work, and the regions that they lie in.
#include "selection.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "fit_evidence.h"
#include "hot/kernels.h"
#include "mirroring.h"
#include "noise.h"

namespace caransac {
namespace {

using namespace nb::literals;

Out<int> most_likely(const In<float, Any>& probabilities, int count) {
    const int n = count_of(probabilities.shape(0));
    require(count >= 0, "count must not be negative");
    std::vector<int> chosen;
    {
        LockRelease release;
        chosen = largest(probabilities.data(), n, count);
    }
    const size_t size = chosen.size();
    return to_numpy(std::move(chosen), {size});
}

Out<float> inner_products(const In<float, Any, Any>& rows, const In<float, Any>& row) {
    const size_t m = count_of(rows.shape(0));
    const int n = count_of(rows.shape(1));
    require(row.shape(0) == rows.shape(1), "row must be as long as rows are");
    Buffer<float> products(m);
    {
        LockRelease release;
        for (size_t i = 0; i < m; ++i) products.data()[i] = kernels().dot(rows.data() + i * n, row.data(), n);
    }
    return std::move(products).to_numpy({m});
}

std::pair<double, double> widths(const Correspondences& correspondences, int most) {
    require(most > 0, "most must be positive");
    LockRelease release;
    const Columns<double> points = correspondences.columns();
    return {width(points.u1, points.v1, points.n, most), width(points.u2, points.v2, points.n, most)};
}

std::pair<int, int> mirrored_turns(const Correspondences& correspondences, int rank) {
    require(rank > 0, "rank must be positive");
    require_dimensions(correspondences, 2);
    LockRelease release;
    const Turns turns = count_turns(correspondences.columns(), rank);
    return {turns.opposite, turns.decided};
}

std::tuple<Out<double>, Out<double>, double, double, double, double> evidence_of_fit(
    const Numbers& residuals, const In<double, Any, Any>& slopes, const Numbers& weights, const Numbers& shares,
    double noise, double loss_scale, double reach, double last, double steepest, double by_chance, int enough,
    int freedoms) {
    const int n = count_of(weights.shape(0));
    const size_t rows = slopes.shape(0), columns = slopes.shape(1);
    require(shares.shape(0) == weights.shape(0), "shares must be as long as weights");
    require(residuals.shape(0) == rows, "residuals must be as long as slopes");
    require(n == 0 ? rows == 0 : rows % n == 0, "slopes must have the same number of rows for each weight");
    require(noise > 0 && loss_scale > 0, "noise and loss_scale must be positive");
    require(enough > 1, "enough must be more than one");
    require(freedoms > 0 && freedoms <= static_cast<int>(columns),
            "slopes must have a column for each degree of freedom");
    FitEvidence found;
    {
        LockRelease release;
        const Eigen::Map<const Slopes> derivatives(slopes.data(), static_cast<Eigen::Index>(rows),
                                                   static_cast<Eigen::Index>(columns));
        const FitLimits limits{loss_scale, reach * noise, 0.5 * last * noise, last * noise, steepest, by_chance,
                               enough,     freedoms};
        found = fit_evidence(residuals.data(), derivatives, weights.data(), shares.data(), n, limits);
    }
    Buffer<double> information(columns * columns);
    std::copy_n(found.information.data(), columns * columns, information.data());
    return {to_numpy(std::move(found.right), {static_cast<size_t>(n)}),
            std::move(information).to_numpy({columns, columns}),
            found.thinning,
            found.count,
            found.pull,
            found.spread};
}

}  // namespace

void bind_selection(nb::module_& m) {
    m.def("most_likely", &most_likely, "probabilities"_a, "count"_a,
          "Return the indices (k,) of the `count` most probable points, ascending; among equals, the first ones.");
    m.def("inner_products", &inner_products, "rows"_a, "row"_a,
          "Return the inner products (m,) of rows (m, n) with one row (n,).\n\n"
          "The result does not depend on the number of threads.");
    m.def(
        "widths", &widths, "correspondences"_a, "most"_a,
        "Return the width of the region of the points divided by its length, in each image: small for a line.\n\n"
        "It uses medians of the distances from the middle of the region, along and across it, of up to `most` points.");
    m.def("fit_evidence", &evidence_of_fit, "residuals"_a, "slopes"_a, "weights"_a, "shares"_a, "noise"_a,
          "loss_scale"_a, "reach"_a, "last"_a, "steepest"_a, "by_chance"_a, "enough"_a, "freedoms"_a,
          "Return right (n,), information (f, f), thinning, count, pull, spread: see `caransac.geometry.precision`.");
    m.def(
        "mirrored_turns", &mirrored_turns, "correspondences"_a, "rank"_a,
        "Return the number of points whose neighbours of `rank` and the next rank turn in opposite directions in the\n"
        "two images, and the number of points whose neighbours turn in both.");
}

}  // namespace caransac

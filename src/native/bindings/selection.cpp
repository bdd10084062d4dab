// Selection of points for more work, and the regions that they lie in.
#include "selection.h"

#include <nanobind/stl/pair.h>

#include <utility>

#include "arrays.h"
#include "hot/kernels.h"
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
}

}  // namespace caransac

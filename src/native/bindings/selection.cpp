// Which points are worth more work, and where they are.
#include "selection.h"

#include <nanobind/stl/pair.h>

#include <utility>

#include "arrays.h"
#include "noise.h"

namespace caransac {
namespace {

using namespace nb::literals;

Out<int> most_likely(const In<float, Any>& probabilities, int count) {
    const int n = count_of(probabilities.shape(0));
    require(count >= 0, "count must not be negative");
    std::vector<int> chosen;
    {
        nb::gil_scoped_release release;
        chosen = largest(probabilities.data(), n, count);
    }
    const size_t size = chosen.size();
    return to_numpy(std::move(chosen), {size});
}

std::pair<double, double> widths(const Correspondences& correspondences, int most) {
    require(most > 0, "most must be positive");
    nb::gil_scoped_release release;
    const Columns<double> points = correspondences.columns();
    return {width(points.u1, points.v1, points.n, most), width(points.u2, points.v2, points.n, most)};
}

}  // namespace

void bind_selection(nb::module_& m) {
    m.def("most_likely", &most_likely, "probabilities"_a, "count"_a);
    m.def("widths", &widths, "correspondences"_a, "most"_a);
}

}  // namespace caransac

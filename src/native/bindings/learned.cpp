// Networks and what they read.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "arrays.h"
#include "attention.h"
#include "grid_buffer.h"
#include "hot/kernels.h"
#include "side_information.h"

namespace caransac {
namespace {

using namespace nb::literals;

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
    require(outputs >= 1, "x must have columns");
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
        const std::unique_ptr<float[]> scratch(new float[mlp_scratch(packed.data(), static_cast<int>(packed.size()))]);
        kernels().mlp(inputs.data(), static_cast<int>(inputs.size()), rows, packed.data(),
                      static_cast<int>(packed.size()), scratch.get(), result.data());
    }
    return std::move(result).to_numpy({static_cast<size_t>(rows), outputs});
}

Out<float> gather(const In<float, Any, Any>& scores, const In<float, Any, Any>& rows) {
    require(scores.shape(1) == rows.shape(0), "scores must have a column for every row");
    require(rows.shape(1) <= kMaxInputs, "rows must not have more than 1024 columns");
    const size_t k = scores.shape(0), c = rows.shape(1);
    const int models = count_of(k), n = count_of(rows.shape(0));
    Buffer<float> sums(k * c);
    {
        nb::gil_scoped_release release;
        gather_rows(scores.data(), models, rows.data(), n, static_cast<int>(c), sums.data());
    }
    return std::move(sums).to_numpy({k, c});
}

void fill_neighbour_features(const Correspondences& correspondences, double min_distance, int stride, float* out) {
    const Columns<double> p = correspondences.columns();
    const GridBuffer grid1(p.u1, p.v1, p.u2, p.v2, p.n), grid2(p.u2, p.v2, p.u1, p.v1, p.n);
    kernels().neighbour_features(grid1.view(), min_distance, stride, out);
    kernels().neighbour_features(grid2.view(), min_distance, stride, out + kNeighbourFeaturesPerImage);
}

Out<float> neighbour_features(const Correspondences& correspondences, double min_distance) {
    require(min_distance >= 0, "min_distance must not be negative");
    const size_t n = correspondences.size();
    Buffer<float> result(n * kNeighbourFeatures);
    {
        nb::gil_scoped_release release;
        fill_neighbour_features(correspondences, min_distance, kNeighbourFeatures, result.data());
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kNeighbourFeatures)});
}

// The lifted scores, and the features of the neighbours of points in spreads.
Out<float> side_information(const Correspondences& correspondences, const std::optional<Numbers>& scores,
                            ScoreKind score_kind, double min_distance) {
    require(min_distance >= 0, "min_distance must not be negative");
    const size_t n = correspondences.size();
    require(!scores || scores->shape(0) == n, "scores must have one entry for every correspondence");
    Buffer<float> result(n * kSideInformation);
    {
        nb::gil_scoped_release release;
        lift_scores(scores ? scores->data() : nullptr, score_kind, static_cast<int>(n), result.data());
        fill_neighbour_features(correspondences, min_distance, kSideInformation, result.data() + kScoreFeatures);
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kSideInformation)});
}

}  // namespace

void bind_learned(nb::module_& m) {
    nb::enum_<Activation>(m, "Activation", "What follows the affine part of a layer.")
        .value("NONE", Activation::kNone)
        .value("LEAKY_RELU", Activation::kLeakyRelu)
        .value("TANH", Activation::kTanh);

    m.def("mlp", &mlp_rows, "x"_a, "layers"_a);
    m.def("gather_rows", &gather, "scores"_a, "rows"_a);
    nb::enum_<ScoreKind>(m, "ScoreKind", "What the scores of matches are.")
        .value("RATIO", ScoreKind::kRatio)
        .value("CONFIDENCE", ScoreKind::kConfidence);
    m.def("side_information", &side_information, "correspondences"_a, "scores"_a.none(), "score_kind"_a,
          "min_distance"_a);
    m.def("neighbour_features", &neighbour_features, "correspondences"_a, "min_distance"_a);
}

}  // namespace caransac

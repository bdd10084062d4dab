// Networks and their inputs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "arrays.h"
#include "grid_buffer.h"
#include "hot/kernels.h"
#include "packed_layers.h"
#include "side_information.h"
#include "state_network.h"

namespace caransac {
namespace {

using namespace nb::literals;

using StridedMatrix = nb::ndarray<const float, nb::shape<-1, -1>, nb::device::cpu>;
using LayerIn =
    std::tuple<In<float, Any, Any>, In<float, Any>, Activation, bool>;  // weight, bias, activation, residual

using LayersIn = std::vector<LayerIn>;
using StatesOut = std::pair<Out<float>, Out<float>>;  // states (n, width) and probabilities (n,)

// Checks that the layers of a network with `inputs` inputs fit together, and returns them.
std::vector<PlainLayer> checked_layers(size_t inputs, const LayersIn& layers) {
    std::vector<PlainLayer> result;
    for (const auto& [weight, bias, activation, residual] : layers) {
        const size_t width = inputs, outputs = weight.shape(1);
        require(weight.shape(0) == width, "weight must have a row for every input of its layer");
        require(bias.shape(0) == outputs, "bias must have an entry for every column of weight");
        require(outputs >= 1 && outputs <= kMaxLayerWidth, "layers must have 1 to 128 outputs");
        require(!residual || width == outputs, "a residual layer must keep the width");
        result.push_back(
            {weight.data(), bias.data(), static_cast<int>(width), static_cast<int>(outputs), activation, residual});
        inputs = outputs;
    }
    return result;
}

Out<float> mlp_rows(const std::vector<StridedMatrix>& x, const LayersIn& layers) {
    require(!x.empty() && !layers.empty(), "x and layers must not be empty");
    const int rows = count_of(x[0].shape(0));
    std::vector<Input> inputs;
    size_t columns = 0;
    for (const StridedMatrix& part : x) {
        require(part.shape(0) == x[0].shape(0), "all parts of x must have the same length");
        columns += part.shape(1);
        require(columns <= kMaxInputs, "x must not have more than 1024 columns");
        inputs.push_back({part.data(), part.stride(0), part.stride(1), static_cast<int>(part.shape(1))});
    }
    require(columns >= 1, "x must have columns");
    const std::vector<PlainLayer> plain = checked_layers(columns, layers);
    const size_t outputs = plain.back().outputs;
    Buffer<float> result(rows * outputs);
    {
        LockRelease release;
        const PackedLayers packed(plain);
        const Layers network = packed.view();
        AlignedFloats scratch(mlp_scratch(network));
        kernels().mlp(inputs.data(), static_cast<int>(inputs.size()), rows, network, scratch.data(), result.data());
    }
    return std::move(result).to_numpy({static_cast<size_t>(rows), outputs});
}

// Checks what the kernels assume about a part whose last layer is merged with the next part.
void require_joinable(const std::vector<PlainLayer>& layers) {
    require(layers.size() >= 2, "message and digest must have hidden layers");
    require(layers.back().activation == Activation::kNone, "message and digest must end without an activation");
}

void make_state_network(StateNetwork* self, const LayersIn& init, const LayersIn& decoder, const LayersIn& message,
                        const LayersIn& digest, const LayersIn& update) {
    for (const LayersIn* part : {&init, &decoder, &message, &digest, &update})
        require(!part->empty(), "every part must have layers");
    const size_t features = std::get<0>(init[0]).shape(0);
    require(features >= 1 && features <= kMaxInputs, "init must have 1 to 1024 inputs");
    StateParts parts;
    parts.init = checked_layers(features, init);
    const size_t width = parts.init.back().outputs;
    parts.decoder = checked_layers(width, decoder);
    parts.message = checked_layers(width, message);
    parts.digest = checked_layers(parts.message.back().outputs, digest);
    parts.update = checked_layers(width + parts.digest.back().outputs, update);
    require(parts.decoder.back().outputs == 1, "decoder must have one output");
    require(static_cast<size_t>(parts.update.back().outputs) == width,
            "update must have an output for every number of a state");
    require_joinable(parts.message);
    require_joinable(parts.digest);
    require(!parts.update.front().residual, "update must not start with a residual layer");
    new (self) StateNetwork(parts);
}

// Separate memory for states and probabilities, because a caller may keep one and drop the other.
class StateBuffers {
  public:
    StateBuffers(size_t n, size_t width) : n_(n), width_(width), states_(n * width), probabilities_(n) {}
    StateOutput view() { return {states_.data(), probabilities_.data()}; }
    StatesOut to_numpy() && {
        return {std::move(states_).to_numpy({n_, width_}), std::move(probabilities_).to_numpy({n_})};
    }

  private:
    size_t n_, width_;
    Buffer<float> states_, probabilities_;
};

StatesOut first_states(const StateNetwork& network, const In<float, Any, Any>& side) {
    require(side.shape(1) == static_cast<size_t>(network.num_features()),
            "side must have a column for every input of init");
    const int n = count_of(side.shape(0));
    StateBuffers result(n, network.width());
    {
        LockRelease release;
        network.first(side.data(), n, result.view());
    }
    return std::move(result).to_numpy();
}

StatesOut updated_states(const StateNetwork& network, const In<float, Any, Any>& state,
                         const In<float, Any, Any>& msac_scores) {
    require(state.shape(1) == static_cast<size_t>(network.width()), "state must be as wide as the network's states");
    require(msac_scores.shape(1) == state.shape(0), "msac_scores must have a column for every row of state");
    require(msac_scores.shape(0) >= 1 && msac_scores.shape(0) <= kMaxInputs, "msac_scores must have 1 to 1024 rows");
    const int n = count_of(state.shape(0));
    StateBuffers result(n, network.width());
    {
        LockRelease release;
        network.update(state.data(), {msac_scores.data(), static_cast<int>(msac_scores.shape(0)), n}, result.view());
    }
    return std::move(result).to_numpy();
}

void fill_neighbour_features(const Correspondences& correspondences, int stride, float* out) {
    const Columns<double> p = correspondences.columns();
    const GridBuffer grid1(p.u1, p.v1, p.u2, p.v2, p.n, nullptr, p.w2), grid2(p.u2, p.v2, p.u1, p.v1, p.n, p.w2);
    kernels().neighbour_features(grid1.view(), stride, out);
    kernels().neighbour_features(grid2.view(), stride, out + kNeighbourFeaturesPerImage);
}

Out<float> neighbour_features(const Correspondences& correspondences) {
    const size_t n = correspondences.size();
    Buffer<float> result(n * kNeighbourFeatures);
    {
        LockRelease release;
        fill_neighbour_features(correspondences, kNeighbourFeatures, result.data());
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kNeighbourFeatures)});
}

Out<float> fourier_features(const Numbers& values) {
    const size_t n = values.shape(0);
    Buffer<float> result(n * kFourierFeatures);
    {
        LockRelease release;
        lift(values.data(), static_cast<int>(n), kFourierFeatures, result.data());
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kFourierFeatures)});
}

// Lifted scores, and neighbour features of points in units of their spread.
Out<float> side_information(const Correspondences& correspondences, const std::optional<Numbers>& scores,
                            ScoreKind score_kind) {
    const size_t n = correspondences.size();
    require(!scores || scores->shape(0) == n, "scores must have one entry for every correspondence");
    Buffer<float> result(n * kSideInformation);
    {
        LockRelease release;
        lift_scores(scores ? scores->data() : nullptr, score_kind, static_cast<int>(n), result.data());
        fill_neighbour_features(correspondences, kSideInformation, result.data() + kScoreFeatures);
    }
    return std::move(result).to_numpy({n, static_cast<size_t>(kSideInformation)});
}

}  // namespace

void bind_learned(nb::module_& m) {
    nb::enum_<Activation>(m, "Activation", "Function that follows the affine part of a layer.")
        .value("NONE", Activation::kNone)
        .value("LEAKY_RELU", Activation::kLeakyRelu)
        .value("TANH", Activation::kTanh);

    m.def("mlp", &mlp_rows, "x"_a, "layers"_a);
    nb::class_<StateNetwork>(m, "StateNetwork", "The state network with its weights packed.")
        .def("__init__", &make_state_network, "init"_a, "decoder"_a, "message"_a, "digest"_a, "update"_a)
        .def("first", &first_states, "side"_a,
             "Return states (n, c) and inlier probabilities (n,) from side information (n, d).")
        .def("update", &updated_states, "state"_a, "msac_scores"_a,
             "Return states (n, c) and inlier probabilities (n,), updated with scores (k, n), k from 1 to 1024.\n\n"
             "The result is bitwise the same for any number of threads.");
    nb::enum_<ScoreKind>(m, "ScoreKind", "Kind of the scores of matches.")
        .value("RATIO", ScoreKind::kRatio)
        .value("CONFIDENCE", ScoreKind::kConfidence);
    m.def("fourier_features", &fourier_features, "values"_a,
          "Clip numbers (n,) to 0 .. 1.5, and lift them to the sines and cosines of pi 2^i x / 1.5: (n, 16).");
    m.def(
        "side_information", &side_information, "correspondences"_a, "scores"_a.none(), "score_kind"_a,
        "Return 16 sines and cosines of scores (n,), two numbers for their kind, and `neighbour_features`: (n, 36).\n\n"
        "The first 18 columns are zero without scores.");
    m.def(
        "neighbour_features", &neighbour_features, "correspondences"_a,
        "Return features (n, 18): the agreement of each match with its neighbours in each image; see neighbours.h.\n\n"
        "Points are relative to their centre and spread in each image.");
}

}  // namespace caransac

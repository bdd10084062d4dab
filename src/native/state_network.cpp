#include "state_network.h"

#include <algorithm>
#include <memory>

#include "hot/kernels.h"

namespace caransac {
namespace {

constexpr double kSmallestTotal = 1e-6;  // minimum total of the scores, if no model has any score

using RowFloats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<PlainLayer> without_last(const std::vector<PlainLayer>& layers) {
    return {layers.begin(), layers.end() - 1};
}

// Eigen's fast product allocates on the stack, which is small in some threads.
RowMatrix product(const RowMatrix& a, const RowMatrix& b) { return a.lazyProduct(b); }

// A layer without an activation; a skip connection is part of the weight.
AffineMap affine(const PlainLayer& layer) {
    AffineMap map{Eigen::Map<const RowFloats>(layer.weight, layer.inputs, layer.outputs).cast<double>(),
                  Eigen::Map<const RowFloats>(layer.bias, 1, layer.outputs).cast<double>()};
    if (layer.residual) map.weight.diagonal().array() += 1;
    return map;
}

// The last hidden layer of the digest of a match without scores: (1 x outputs).
RowMatrix digest_without_scores(const StateParts& parts) {
    const PackedLayers packed(without_last(parts.digest));
    const Layers network = packed.view();
    AlignedFloats scratch(mlp_scratch(network)), result(outputs_of(network));
    const float zero = 0;
    const Input zeros{&zero, 0, 0, inputs_of(network)};
    kernels().mlp(&zeros, 1, 1, network, scratch.data(), result.data());
    return Eigen::Map<const Eigen::RowVectorXf>(result.data(), outputs_of(network)).cast<double>();
}

}  // namespace

StateNetwork::StateNetwork(const StateParts& parts)
    : init_(parts.init), decoder_(parts.decoder), message_(without_last(parts.message)) {
    const PlainLayer& digest_start = parts.digest.front();
    gathered_ = affine(parts.message.back());
    starts_residual_ = digest_start.residual;
    if (!starts_residual_) {
        const RowMatrix start = affine(digest_start).weight;
        gathered_ = {product(gathered_.weight, start), product(gathered_.bias, start)};
    }
    digest_ = PackedLayers(without_last(parts.digest));

    const AffineMap digest_end = affine(parts.digest.back()), update_start = affine(parts.update.front());
    const int states = width(), digests = static_cast<int>(digest_end.weight.rows());
    const RowMatrix of_digest = update_start.weight.bottomRows(digest_end.weight.cols());
    const RowMatrix weight = product(digest_end.weight, of_digest);
    const RowMatrix bias = update_start.bias + product(digest_end.bias, of_digest);

    RowFloats joined;
    joined.setZero(padded(states) + digests, weight.cols());
    joined.topRows(states) = update_start.weight.topRows(states).cast<float>();
    joined.bottomRows(digests) = weight.cast<float>();
    const Eigen::RowVectorXf with = bias.cast<float>();
    const Eigen::RowVectorXf without = (bias + product(digest_without_scores(parts), weight)).cast<float>();

    PlainLayer start = parts.update.front();
    start.weight = joined.data();
    start.bias = with.data();
    start.inputs = static_cast<int>(joined.rows());
    explained_.add(start);
    start.bias = without.data();
    start.inputs = states;
    unexplained_.add(start);
    for (size_t l = 1; l < parts.update.size(); ++l) {
        explained_.add(parts.update[l]);
        unexplained_.add(parts.update[l]);
    }
}

void StateNetwork::first(const float* side, int n, const StateOutput& out) const {
    const Layers init = init_.view(), decoder = decoder_.view();
    AlignedFloats scratch(first_scratch(init, decoder));
    kernels().first_states(side, n, init, decoder, scratch.data(), out);
}

std::vector<float> StateNetwork::digest_weight(const float* states, const Scores& scores, const int* rows,
                                               int count) const {
    const Layers message = message_.view();
    AlignedFloats scratch(message_scratch(message, scores.k));
    RowMatrix sums = RowMatrix::Zero(scores.k, padded(outputs_of(message)));
    RowMatrix totals = RowMatrix::Zero(padded(scores.k), 1);
    kernels().gather_messages(states, scores, rows, count, message, scratch.data(), sums.data(), totals.data());
    const RowMatrix products = product(sums.leftCols(outputs_of(message)), gathered_.weight) +
                               product(totals.topRows(scores.k), gathered_.bias);
    const double total = std::max(totals.sum(), kSmallestTotal);
    std::vector<float> weight(products.size());
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(products.data()[i] / total);
    return weight;
}

void StateNetwork::update(const float* states, const Scores& scores, const StateOutput& out) const {
    const std::unique_ptr<int[]> rows(new int[scores.n]);
    const int num_explained = kernels().explained_first(scores, rows.get());
    const std::vector<float> weight = digest_weight(states, scores, rows.get(), num_explained);

    const Layers hidden = digest_.view();
    std::vector<Layer> digest(hidden.layers, hidden.layers + hidden.count);
    const int width = static_cast<int>(weight.size()) / scores.k;
    std::vector<float> bias(width);
    Activation activation = Activation::kNone;
    if (starts_residual_) {
        digest.insert(digest.begin(), Layer{});
    } else {
        bias.assign(digest[0].bias, digest[0].bias + width);
        activation = digest[0].activation;
    }
    PackedLayers start;
    start.add({weight.data(), bias.data(), scores.k, width, activation, false});
    digest[0] = start.view().layers[0];

    const UpdateLayers layers{
        {digest.data(), static_cast<int>(digest.size())}, explained_.view(), unexplained_.view(), decoder_.view()};
    AlignedFloats scratch(update_scratch(layers));
    kernels().update_states(states, scores, rows.get(), num_explained, layers, scratch.data(), out);
}

}  // namespace caransac

// The kernels under libFuzzer with the address and undefined-behaviour sanitizers: what the bindings let through,
// finite coordinates and indices in range, and otherwise any numbers, must neither leave an array nor keep a kernel
// busy.
#include <fuzzer/FuzzedDataProvider.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "correspondences.h"
#include "deviations.h"
#include "grid_buffer.h"
#include "hot/kernels.h"
#include "hot/real_roots.h"
#include "packed_layers.h"
#include "pose.h"
#include "refine.h"
#include "regions.h"
#include "sampler.h"
#include "spreads.h"
#include "state_network.h"

using namespace caransac;

namespace {

void check(bool condition) {
    if (!condition) std::abort();
}

// Any number at all, often a special one.
double any_number(FuzzedDataProvider& data) {
    constexpr double kSpecial[] = {0, -0.0, 1, -1, 0.5, 1e-320, 1e308, -1e308, INFINITY, -INFINITY, NAN};
    switch (data.ConsumeIntegralInRange(0, 3)) {
        case 0:
            return data.PickValueInArray(kSpecial);
        case 1: {
            const uint64_t bits = data.ConsumeIntegral<uint64_t>();
            double value;
            __builtin_memcpy(&value, &bits, sizeof(value));
            return value;
        }
        default:
            return data.ConsumeIntegral<int16_t>() / 8192.0;
    }
}

std::vector<double> numbers(FuzzedDataProvider& data, size_t count, bool finite) {
    std::vector<double> values(count);
    for (double& value : values) {
        value = any_number(data);
        if (finite && !std::isfinite(value)) value = 0;
    }
    return values;
}

std::vector<int> indices(FuzzedDataProvider& data, size_t count, int end) {
    std::vector<int> values(count);
    for (int& value : values) value = data.ConsumeIntegralInRange(0, end - 1);
    return values;
}

template <int kSize, int kMaxSolutions, int kEntries = 9, class Solver>
void solve(FuzzedDataProvider& data, const Correspondences& points, Solver solver) {
    const int count = data.ConsumeIntegralInRange(1, 20);
    const std::vector<int> members = indices(data, static_cast<size_t>(count) * kSize, points.size());
    std::vector<double> x1, x2, models(kEntries * static_cast<size_t>(count) * kMaxSolutions);
    for (const int i : members) {
        const Columns<double> from = points.columns();
        x1.insert(x1.end(), {from.u1[i], from.v1[i]});
        x2.insert(x2.end(), {from.u2[i], from.v2[i]});
    }
    std::vector<int> sample(static_cast<size_t>(count) * kMaxSolutions);
    const int solutions = solver(x1.data(), x2.data(), count, models.data(), sample.data());
    check(0 <= solutions && solutions <= count * kMaxSolutions);
    for (int i = 0; i < solutions; ++i) check(0 <= sample[i] && sample[i] < count);
}

RefineOptions some_options(FuzzedDataProvider& data) {
    RefineOptions options;
    options.loss = data.ConsumeBool() ? Loss::kTruncated : Loss::kCauchy;
    options.loss_scale = std::abs(any_number(data));
    if (!(options.loss_scale > 0)) options.loss_scale = 1;
    const double reach = std::abs(any_number(data));
    options.max_residual_sq = reach > 0 ? reach * reach : 0;
    options.max_steps = data.ConsumeIntegralInRange(0, 8);
    options.max_points = data.ConsumeIntegralInRange(0, 40);
    options.precision = data.ConsumeBool() ? Precision::kSingle : Precision::kDouble;
    return options;
}

template <class Model>
void refine(FuzzedDataProvider& data, const Correspondences& points, Model model) {
    std::vector<double> weights = numbers(data, data.ConsumeBool() ? points.size() : 0, true);
    for (double& weight : weights) weight = std::abs(weight);
    const bool weighted = weights.size() == static_cast<size_t>(points.size()) && !weights.empty();
    Refiner refiner(points.columns(), weighted ? weights.data() : nullptr, some_options(data));
    for (int i = 0; i < 2; ++i) {
        const RefineReport report = refiner.refine(model);
        check(!(report.cost > report.initial_cost));
    }
}

void refine_any(FuzzedDataProvider& data, const Correspondences& points) {
    const std::vector<double> entries = numbers(data, 18, false);
    const Matrix3 matrix = Eigen::Map<const Matrix3>(entries.data());
    switch (data.ConsumeIntegralInRange(0, 3)) {
        case 0:
            return refine(data, points, read_pose(entries.data()));
        case 1:
            return refine(data, points, read_focal_pose(entries.data()));
        case 2:
            return refine(data, points, matrix);
        default:
            return refine(data, points, HomographyManifold(matrix));
    }
}

void deviate(FuzzedDataProvider& data, const Correspondences& points) {
    const std::vector<double> entries = numbers(data, 9 + 3 * 7, false);
    const Rates rates = Eigen::Map<const Rates>(entries.data() + 9, 7, 3);
    const FundamentalManifold model{Matrix3(Eigen::Map<const Matrix3>(entries.data()))};
    const double variance = std::abs(any_number(data));
    const std::vector<double> weights(points.size(), 1.0);
    deviations(model, points.columns(), weights, rates, variance > 0 ? variance : 1, Prior::Identity(7, 7),
               data.ConsumeIntegral<uint8_t>());
}

void score(FuzzedDataProvider& data, const Correspondences& points) {
    const int count = data.ConsumeIntegralInRange(1, 6), k = data.ConsumeIntegralInRange(1, count);
    const std::vector<double> models = numbers(data, 9 * static_cast<size_t>(count), false);
    const double max_error = std::abs(any_number(data)), max_error_sq = max_error > 0 ? max_error * max_error : 1;
    const int room = padded(points.size());
    std::vector<float> scores(room);
    std::vector<double> residuals(room), totals(k);
    std::vector<int> best(k);
    kernels().msac_scores(models.data(), points.columns(), max_error_sq, scores.data());
    for (int i = 0; i < points.size(); ++i) check(scores[i] >= 0 && scores[i] <= 1);
    Regions(points, std::vector<float>(points.size(), 1.0F), 4.0).spread_consensus(scores.data());
    kernels().residuals_sq(models.data(), points.columns(), residuals.data());
    kernels().rough_msac_scores(models.data(), points.single_columns(), max_error_sq, scores.data());
    for (int i = 0; i < points.size(); ++i) check(scores[i] >= 0 && scores[i] <= 1);
    check(kernels().top_models(models.data(), count, points.single_columns(), max_error_sq, k, best.data(),
                               totals.data()) == k);
    for (const int i : best) check(0 <= i && i < count);
    const TwoWayHomography both = HomographyManifold(Eigen::Map<const Matrix3>(models.data())).both_ways();
    kernels().homography_scores(both, points.columns(), max_error_sq, scores.data());
}

void look_at_neighbours(const Correspondences& given) {
    const Columns<double> q = given.columns();
    const Spread spreads[2] = {spread_of(q.u1, q.v1, q.n), spread_of(q.u2, q.v2, q.n)};
    const Correspondences moved = in_spreads(given, spreads);
    for (int i = 0; i < q.n; ++i)  // the bindings refuse it then
        if (std::isnan(moved.columns().u1[i] + moved.columns().v1[i] + moved.columns().u2[i] + moved.columns().v2[i]))
            return;
    const Columns<double> p = moved.columns();
    const GridBuffer grid(p.u1, p.v1, p.u2, p.v2, p.n);
    std::vector<float> features(static_cast<size_t>(p.n) * kNeighbourFeatures);
    kernels().neighbour_features(grid.view(), kNeighbourFeatures, features.data());
    for (int i = 0; i < p.n; ++i)
        for (int f = 0; f < kNeighbourFeaturesPerImage; ++f) check(std::isfinite(features[i * kNeighbourFeatures + f]));
}

void draw(FuzzedDataProvider& data) {
    const int size = data.ConsumeIntegralInRange(1, 8), pool_size = data.ConsumeIntegralInRange(size, 300);
    const int count = data.ConsumeIntegralInRange(0, 40);
    std::vector<int> pool(pool_size), samples(static_cast<size_t>(count) * size);
    for (int i = 0; i < pool_size; ++i) pool[i] = i;
    const uint64_t seed = data.ConsumeIntegral<uint64_t>(), first = data.ConsumeIntegral<uint64_t>() >> 2;
    const double horizon = std::abs(any_number(data));
    if (data.ConsumeBool())
        sample_uniform(pool.data(), pool_size, size, seed, first, count, samples.data());
    else
        sample_prosac(pool.data(), pool_size, size, seed, first, count, horizon > 0 ? horizon : 1, samples.data());
    for (const int member : samples) check(0 <= member && member < pool_size);
}

void find_roots(FuzzedDataProvider& data) {
    const std::vector<double> coefficients = numbers(data, 11, false);
    double roots[10];
    check(baseline::real_roots<3>(coefficients.data(), roots) <= 3);
    check(baseline::real_roots<10>(coefficients.data(), roots) <= 10);
    baseline::Doubles packs[11], packed_roots[10];
    int count[baseline::kDoubles];
    for (int i = 0; i < 11; ++i) packs[i] = baseline::broadcast(coefficients[i]);
    check(baseline::real_roots<3>(packs, packed_roots, count) <= 3);
    check(baseline::real_roots<10>(packs, packed_roots, count) <= 10);
}

// Layers that fit together, each of one number throughout, and their weights.
class AnyLayers {
  public:
    AnyLayers(FuzzedDataProvider& data, int inputs) : data_(data), width_(inputs) {}
    void add(int outputs, Activation activation, bool residual) {
        const float entry = static_cast<float>(any_number(data_));
        weights_.emplace_back(static_cast<size_t>(width_) * outputs, entry);
        const float* weight = weights_.back().data();
        weights_.emplace_back(outputs, entry);
        layers_.push_back({weight, weights_.back().data(), width_, outputs, activation, residual && outputs == width_});
        width_ = outputs;
    }
    void add_any(bool may_be_residual) {
        const bool residual = may_be_residual && data_.ConsumeBool() && width_ <= kMaxLayerWidth;
        add(residual ? width_ : data_.ConsumeIntegralInRange(1, 40),
            static_cast<Activation>(data_.ConsumeIntegralInRange(0, 2)), residual);
    }
    int width() const { return width_; }
    const std::vector<PlainLayer>& layers() const { return layers_; }

  private:
    FuzzedDataProvider& data_;
    int width_;
    std::vector<std::vector<float>> weights_;
    std::vector<PlainLayer> layers_;
};

void run_network(FuzzedDataProvider& data) {
    const int rows = data.ConsumeIntegralInRange(0, 100), inputs = data.ConsumeIntegralInRange(1, 60);
    AnyLayers any(data, inputs);
    for (int l = 0, count = data.ConsumeIntegralInRange(1, 3); l < count; ++l) any.add_any(true);
    const PackedLayers packed(any.layers());
    const bool transposed = data.ConsumeBool();
    const std::vector<float> x(static_cast<size_t>(rows) * inputs, static_cast<float>(any_number(data)));
    const Input input{x.data(), transposed ? 1 : inputs, transposed ? rows : 1, inputs};
    AlignedFloats scratch(mlp_scratch(packed.view()));
    std::vector<float> out(static_cast<size_t>(rows) * any.width());
    kernels().mlp(&input, 1, rows, packed.view(), scratch.data(), out.data());
}

void run_state_network(FuzzedDataProvider& data) {
    const int n = data.ConsumeIntegralInRange(0, 120), k = data.ConsumeIntegralInRange(1, 20);
    const int features = data.ConsumeIntegralInRange(1, 40), width = data.ConsumeIntegralInRange(1, 40);
    AnyLayers init(data, features), decoder(data, width), message(data, width);
    init.add(width, Activation::kLeakyRelu, false);
    for (AnyLayers* part : {&decoder, &message}) part->add_any(false);
    decoder.add(1, Activation::kNone, false);
    message.add(data.ConsumeIntegralInRange(1, 40), Activation::kNone, false);
    AnyLayers digest(data, message.width());
    digest.add_any(false);
    digest.add_any(true);
    digest.add(data.ConsumeIntegralInRange(1, 40), Activation::kNone, false);
    AnyLayers update(data, width + digest.width());
    update.add_any(false);
    update.add(width, Activation::kNone, false);
    const StateNetwork network({init.layers(), decoder.layers(), message.layers(), digest.layers(), update.layers()});

    const std::vector<float> side(static_cast<size_t>(n) * features, static_cast<float>(any_number(data)));
    std::vector<float> scores(static_cast<size_t>(k) * n);
    for (float& score : scores) score = data.ConsumeBool() ? static_cast<float>(any_number(data)) : 0.0f;
    std::vector<float> states(static_cast<size_t>(n) * width), updated(states.size()), probabilities(n);
    network.first(side.data(), n, {states.data(), probabilities.data()});
    network.update(states.data(), {scores.data(), k, n}, {updated.data(), probabilities.data()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    FuzzedDataProvider data(bytes, size);
    const int kind = data.ConsumeIntegralInRange(0, 10);
    if (kind == 0) return draw(data), 0;
    if (kind == 1) return find_roots(data), 0;
    if (kind == 2) return run_network(data), 0;
    if (kind == 10) return run_state_network(data), 0;
    const int n = data.ConsumeIntegralInRange(1, 70);
    const std::vector<double> points1 = numbers(data, 2 * static_cast<size_t>(n), true);
    const std::vector<double> points2 = numbers(data, 2 * static_cast<size_t>(n), true);
    const Correspondences points(points1.data(), points2.data(), n);
    if (kind == 3) {
        solve<5, baseline::kFivePointMaxSolutions>(data, points, kernels().five_point);
        solve<5, baseline::kFivePointMaxSolutions, 12>(data, points, kernels().five_point_poses);
    }
    if (kind == 4) solve<7, baseline::kSevenPointMaxSolutions>(data, points, kernels().seven_point);
    if (kind == 5) solve<4, 1>(data, points, kernels().four_point);
    if (kind == 6) refine_any(data, points);
    if (kind == 7) score(data, points);
    if (kind == 8) look_at_neighbours(points);
    if (kind == 9) deviate(data, points);
    return 0;
}

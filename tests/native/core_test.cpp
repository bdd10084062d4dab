// The core without Python: from correspondences to a pose by the functions that the bindings wrap. test_core.py
// compiles and runs it; every assertion that fails ends it with its line.
#undef NDEBUG
#include <Eigen/Geometry>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "correspondences.h"
#include "hot/kernels.h"
#include "model_kinds.h"
#include "noise.h"
#include "regions.h"
#include "round.h"
#include "sampler.h"
#include "selection.h"

using namespace caransac;

namespace {

constexpr double kPi = 3.14159265358979323846, kNoise = 5e-4, kMaxError = 4 * 0.674 * kNoise;
constexpr int kPoints = 500, kRight = 300, kSamples = 256;

// Uniform in 0 .. 1, and normal numbers, from the generator of the samples.
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : stream_(seed, 0) {}
    double uniform() { return static_cast<double>(stream_.next() >> 11) / 9007199254740992.0; }
    double uniform(double low, double high) { return low + (high - low) * uniform(); }
    double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * kPi * uniform()); }

  private:
    RandomStream stream_;
};

struct Scene {
    Pose truth;
    std::vector<double> points1, points2;
    Correspondences correspondences() const { return {points1.data(), points2.data(), kPoints}; }
};

// Points in front of both cameras, the first kRight of them seen where they are but for noise.
Scene make_scene(std::uint64_t seed, double noise) {
    Numbers numbers(seed);
    Scene scene;
    const Vector3 axis = Vector3(numbers.normal(), numbers.normal(), numbers.normal()).normalized();
    scene.truth.rotation = Eigen::AngleAxisd(numbers.uniform(0.05, 0.4), axis).toRotationMatrix();
    scene.truth.translation = Vector3(numbers.normal(), numbers.normal(), 0.5 * numbers.normal()).normalized();
    while (static_cast<int>(scene.points1.size()) < 2 * kPoints) {
        const Vector3 X = numbers.uniform(3, 9) * Vector3(numbers.uniform(-0.5, 0.5), numbers.uniform(-0.5, 0.5), 1);
        const Vector3 Y = scene.truth.rotation * X + scene.truth.translation;
        if (Y.z() < 0.5) continue;
        const bool right = static_cast<int>(scene.points1.size()) < 2 * kRight;
        for (int k = 0; k < 2; ++k) {
            scene.points1.push_back(X[k] / X.z() + noise * numbers.normal());
            scene.points2.push_back(right ? Y[k] / Y.z() + noise * numbers.normal() : numbers.uniform(-0.7, 0.7));
        }
    }
    return scene;
}

double rotation_error_deg(const Pose& pose, const Pose& truth) {
    return std::abs(Eigen::AngleAxisd(Eigen::Matrix3d(pose.rotation * truth.rotation.transpose())).angle()) * 180 / kPi;
}

double translation_error_deg(const Pose& pose, const Pose& truth) {
    return std::acos(std::fmin(pose.translation.dot(truth.translation), 1.0)) * 180 / kPi;
}

std::vector<int> draw(int pool_size, std::uint64_t seed) {
    std::vector<int> pool(pool_size), samples(5 * kSamples);
    std::iota(pool.begin(), pool.end(), 0);
    sample_uniform(pool.data(), pool_size, 5, seed, 0, kSamples, samples.data());
    return samples;
}

// The coordinates of samples as the solvers read them.
std::vector<double> gather(const std::vector<double>& points, const std::vector<int>& samples) {
    std::vector<double> gathered;
    for (const int i : samples) gathered.insert(gathered.end(), {points[2 * i], points[2 * i + 1]});
    return gathered;
}

// Essential matrices of noise-free samples: all go through their five points, and nearly every sample finds the truth.
void test_five_point() {
    const Scene scene = make_scene(1, 0);
    const std::vector<int> samples = draw(kRight, 1);
    const std::vector<double> x1 = gather(scene.points1, samples), x2 = gather(scene.points2, samples);
    std::vector<double> models(9 * 10 * kSamples);
    std::vector<int> origin(10 * kSamples);
    const int count = kernels().five_point(x1.data(), x2.data(), kSamples, models.data(), origin.data());
    assert(count > kSamples);
    const Matrix3 truth = essential_from_pose(scene.truth);
    std::vector<bool> found(kSamples);
    for (int i = 0; i < count; ++i) {
        const Eigen::Map<const Matrix3> E(models.data() + 9 * i);
        assert(std::abs(E.norm() - std::sqrt(2.0)) < 1e-9);
        for (int k = 0; k < 5; ++k) {
            const size_t at = 2 * (5 * static_cast<size_t>(origin[i]) + k);
            const Vector3 ray1(x1[at], x1[at + 1], 1), ray2(x2[at], x2[at + 1], 1);
            assert(std::abs(ray2.dot(E * ray1)) < 1e-6);
        }
        if (std::min((E - truth).norm(), (E + truth).norm()) < 1e-4) found[origin[i]] = true;
    }
    assert(std::count(found.begin(), found.end(), true) > 0.95 * kSamples);
}

std::vector<Pose> solve(const Scene& scene, const std::vector<int>& samples) {
    const std::vector<double> x1 = gather(scene.points1, samples), x2 = gather(scene.points2, samples);
    std::vector<double> rows(12 * 10 * kSamples);
    std::vector<int> origin(10 * kSamples);
    const int count = kernels().five_point_poses(x1.data(), x2.data(), kSamples, rows.data(), origin.data());
    std::vector<Pose> poses;
    for (int i = 0; i < count; ++i) poses.push_back(read_pose(rows.data() + 12 * i));
    return poses;
}

std::vector<float> scores_of(const Pose& pose, const Correspondences& points) {
    std::vector<float> scores(padded(points.size()));
    Poses::msac_scores(pose, points.columns(), kMaxError * kMaxError, scores.data());
    scores.resize(points.size());
    return scores;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    return ab / std::sqrt(std::fmax(aa * bb, 1e-30));
}

// A round: samples with outliers, the promising models refined, the distinct ones by their consensus; the best is
// right.
void test_round(std::uint64_t seed) {
    const Scene scene = make_scene(seed, kNoise);
    const Correspondences points = scene.correspondences();
    const std::vector<Pose> poses = solve(scene, draw(kPoints, seed));
    assert(poses.size() > kSamples / 2);

    RefineOptions options;
    options.loss = Loss::kTruncated;
    options.loss_scale = kMaxError;
    options.max_residual_sq = 5 * kMaxError * kMaxError;
    options.max_steps = 10;
    const std::vector<Pose> kept = promising<Poses>(poses, points, kMaxError, 32, options);
    assert(kept.size() == 32);

    const Regions regions(points, std::vector<float>(kPoints, 1.0F), 7);
    const std::vector<Pose> distinct = most_distinct<Poses>(kept, points, kMaxError, regions, 4, 0.95);
    assert(!distinct.empty() && distinct.size() <= 4);
    std::printf("rotation off by %.3f degrees, translation by %.3f\n", rotation_error_deg(distinct[0], scene.truth),
                translation_error_deg(distinct[0], scene.truth));
    assert(rotation_error_deg(distinct[0], scene.truth) < 0.1);
    assert(translation_error_deg(distinct[0], scene.truth) < 1);

    const std::vector<double> totals = spread_consensus<Poses>(distinct, points, kMaxError, regions);
    const std::vector<double> all = spread_consensus<Poses>(kept, points, kMaxError, regions);
    assert(totals[0] == *std::max_element(all.begin(), all.end()));
    for (size_t i = 0; i < distinct.size(); ++i) {
        assert(i == 0 || totals[i] <= totals[i - 1]);
        for (size_t j = 0; j < i; ++j)
            assert(cosine(scores_of(distinct[i], points), scores_of(distinct[j], points)) < 0.951);
    }

    const std::vector<float> scores = scores_of(distinct[0], points);
    const auto right = std::count_if(scores.begin(), scores.begin() + kRight, [](float s) { return s > 0; });
    assert(right > 0.97 * kRight);
    const RightMatches found = right_matches(distances<Poses>(distinct[0], points), 20 * 0.674 * kNoise, 1);
    assert(std::abs(found.count - kRight) < 0.1 * kRight);
    assert(std::abs(found.median / (0.674 * kNoise) - 1) < 0.15);

    // Were the right matches nothing, the right model would be the last.
    std::vector<float> weights(kPoints, 1.0F);
    std::fill(weights.begin(), weights.begin() + kRight, 0.0F);
    const Regions others(points, weights, 7);
    const std::vector<Pose> ranked = most_distinct<Poses>(kept, points, kMaxError, others, 32, 1.1);
    assert(ranked.size() == kept.size());
    const std::vector<double> wrong = spread_consensus<Poses>(ranked, points, kMaxError, others);
    for (size_t i = 1; i < wrong.size(); ++i) assert(wrong[i] <= wrong[i - 1]);
}

void test_nothing() {
    const Scene scene = make_scene(1, kNoise);
    const Correspondences points = scene.correspondences();
    const Regions regions(points, std::vector<float>(kPoints, 1.0F), 7);
    assert(promising<Poses>({}, points, kMaxError, 32, RefineOptions()).empty());
    assert(most_distinct<Poses>({}, points, kMaxError, regions, 4, 0.95).empty());
    assert(largest(nullptr, 0, 5).empty());
}

}  // namespace

int main() {
    test_five_point();
    for (std::uint64_t seed = 1; seed <= 5; ++seed) test_round(seed);
    test_nothing();
    std::puts("the core works without Python");
}

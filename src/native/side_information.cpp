#include "side_information.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace caransac {

namespace {

constexpr double kLargestScore = 1.5, kPi = 3.14159265358979323846;
constexpr int kBlock = 64;  // scores at a time: the compiler packs loops over them

// The sine and the cosine of an angle from 0 to pi, accurate to 1e-11: their series around a right angle.
inline void sine_and_cosine(double angle, double& sine, double& cosine) {
    const double t = angle - 0.5 * kPi, t2 = t * t;
    double even = 1, odd = 1;  // 1 - t^2 / 2! + ... and 1 - t^2 / 3! + ...
    for (int k = 16; k > 0; k -= 2) {
        even = 1 - even * (t2 * (1.0 / (k * (k - 1))));
        odd = 1 - odd * (t2 * (1.0 / (k * (k + 1))));
    }
    sine = even;
    cosine = -t * odd;
}

void lift_block(const double* values, int n, int stride, float* out) {
    double sine[kBlock], cosine[kBlock];
    for (int i = 0; i < n; ++i)
        sine_and_cosine(std::clamp(values[i], 0.0, kLargestScore) * (kPi / kLargestScore), sine[i], cosine[i]);
    for (int k = 0; k < kScoreFrequencies; ++k)
        for (int i = 0; i < n; ++i) {
            float* row = out + static_cast<size_t>(i) * stride;
            row[k] = static_cast<float>(sine[i]);
            row[kScoreFrequencies + k] = static_cast<float>(cosine[i]);
            // Doubles the angle, which is much cheaper than computing sine and cosine again.
            const double doubled = 2 * sine[i] * cosine[i];
            cosine[i] = (cosine[i] - sine[i]) * (cosine[i] + sine[i]);
            sine[i] = doubled;
        }
}

}  // namespace

void lift(const double* values, int n, int stride, float* out) {
    for (int first = 0; first < n; first += kBlock)
        lift_block(values + first, std::min(n - first, kBlock), stride, out + static_cast<size_t>(first) * stride);
}

void lift_scores(const double* scores, ScoreKind kind, int n, float* out) {
    if (scores != nullptr) lift(scores, n, kSideInformation, out);
    for (int i = 0; i < n; ++i) {
        float* row = out + static_cast<size_t>(i) * kSideInformation;
        if (scores == nullptr) std::fill_n(row, kFourierFeatures, 0.0f);
        row[kFourierFeatures] = scores != nullptr && kind == ScoreKind::kRatio ? 1.0f : 0.0f;
        row[kFourierFeatures + 1] = scores != nullptr && kind == ScoreKind::kConfidence ? 1.0f : 0.0f;
    }
}

}  // namespace caransac

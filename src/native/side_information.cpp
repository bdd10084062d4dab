#include "side_information.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace caransac {

void lift_scores(const double* scores, ScoreKind kind, int n, float* out) {
    constexpr double kLargest = 1.5, kPi = 3.14159265358979323846;
    for (int i = 0; i < n; ++i) {
        float* row = out + static_cast<size_t>(i) * kSideInformation;
        std::fill_n(row, kScoreFeatures, 0.0f);
        if (scores == nullptr) continue;
        const double phase = std::clamp(scores[i], 0.0, kLargest) * (kPi / kLargest);
        double sine = std::sin(phase), cosine = std::cos(phase);
        for (int k = 0; k < kScoreFrequencies; ++k) {
            row[k] = static_cast<float>(sine);
            row[kScoreFrequencies + k] = static_cast<float>(cosine);
            // Twice the angle, at a fraction of the cost of its sine and cosine.
            const double doubled = 2 * sine * cosine;
            cosine = (cosine - sine) * (cosine + sine);
            sine = doubled;
        }
        row[2 * kScoreFrequencies + (kind == ScoreKind::kRatio ? 0 : 1)] = 1;
    }
}

}  // namespace caransac

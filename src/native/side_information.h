// Known facts about a match before any model is tried, as inputs of the state network.
#pragma once

#include "hot/neighbours.h"

namespace caransac {

constexpr int kScoreFrequencies = 8;  // each twice the one before
constexpr int kFourierFeatures = 2 * kScoreFrequencies;
constexpr int kScoreFeatures = kFourierFeatures + 2;
constexpr int kSideInformation = kScoreFeatures + kNeighbourFeatures;

enum class ScoreKind { kRatio, kConfidence };

// Lifts numbers, clipped to 0 .. 1.5, to sines and cosines of increasing frequency: the first kFourierFeatures columns
// of n rows of `stride` numbers.
void lift(const double* values, int n, int stride, float* out);

// Lifts scores to sines and cosines of increasing frequency, and adds their kind: the first columns of n rows of
// kSideInformation numbers. All are zero without scores.
void lift_scores(const double* scores, ScoreKind kind, int n, float* out);

}  // namespace caransac

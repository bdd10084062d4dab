// What is known about a match before any model is tried, as numbers the state network reads.
#pragma once

#include "hot/neighbours.h"

namespace caransac {

constexpr int kScoreFrequencies = 8;  // each twice the one before
constexpr int kFourierFeatures = 2 * kScoreFrequencies;
constexpr int kScoreFeatures = kFourierFeatures + 2;
constexpr int kSideInformation = kScoreFeatures + kNeighbourFeatures;

enum class ScoreKind { kRatio, kConfidence };

// Numbers from 0 to 1.5, others cut to that, lifted to sines and cosines of rising frequency: the first kFourierFeatures
// columns of n rows of `stride` numbers.
void lift(const double* values, int n, int stride, float* out);

// Scores, or none, lifted to sines and cosines of rising frequency, and which kind they are: the first columns of n
// rows of kSideInformation numbers. Zero without scores.
void lift_scores(const double* scores, ScoreKind kind, int n, float* out);

}  // namespace caransac

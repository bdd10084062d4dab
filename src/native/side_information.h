// What is known about a match before any model is tried, as numbers the state network reads.
#pragma once

#include "hot/neighbours.h"

namespace caransac {

constexpr int kScoreFrequencies = 8;  // each twice the one before
constexpr int kScoreFeatures = 2 * kScoreFrequencies + 2;
constexpr int kSideInformation = kScoreFeatures + kNeighbourFeatures;

enum class ScoreKind { kRatio, kConfidence };

// Scores, or none, lifted to sines and cosines of rising frequency, and which kind they are: the first columns of n
// rows of kSideInformation numbers. Zero without scores.
void lift_scores(const double* scores, ScoreKind kind, int n, float* out);

}  // namespace caransac

// Robust centre and spread of the points of an image.
#pragma once

#include <cstddef>
#include <vector>

#include "correspondences.h"

namespace caransac {

// The median of a non-empty set of values: the mean of the two middle values if their number is even.
double median(std::vector<double> values);

// The value of a rank, 0 for the smallest.
double ranked(std::vector<double> values, size_t rank);

// Medians of the coordinates, and the spread around them: about the root mean square for points all over an image.
struct Spread {
    double centre[2] = {0, 0}, size = 0;
};

Spread spread_of(const double* u, const double* v, int n);

// The points of each image relative to their centre, divided by their spread; unchanged if the spread is zero.
Correspondences in_spreads(const Correspondences& correspondences, const Spread spreads[2]);

// Normalisation of pixels to the order of one: (pixel - centre) * scale for the columns u1, v1, u2, v2.
struct Normalisation {
    double centre[4] = {0, 0, 0, 0}, scale = 1;
};

// Each image is centred, but both have the same scale, so that only the unit of distances changes. Medians are used
// because a single extreme match would otherwise shrink all others to a point.
Normalisation normalisation_of(const Correspondences& pixels);

}  // namespace caransac

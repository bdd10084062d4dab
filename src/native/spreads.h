// Where the points of an image are, whatever a few absurd ones do.
#pragma once

#include <cstddef>
#include <vector>

#include "correspondences.h"

namespace caransac {

// The median of values, of which there are some: the mean of the two in the middle where their number is even.
double median(std::vector<double> values);

// The value of a rank, 0 for the smallest.
double ranked(std::vector<double> values, size_t rank);

// Medians of the coordinates, and the spread around them: about the root mean square for points all over an image.
struct Spread {
    double centre[2] = {0, 0}, size = 0;
};

Spread spread_of(const double* u, const double* v, int n);

// The points of either image relative to their centre, in spreads; as they are where the spread vanishes.
Correspondences in_spreads(const Correspondences& correspondences, const Spread spreads[2]);

// Pixels become points of the order of one: (pixel - centre) * scale, of the columns u1, v1, u2, v2.
struct Normalisation {
    double centre[4] = {0, 0, 0, 0}, scale = 1;
};

// Each image is centred but both are scaled alike: distances in an image then only change their unit. Medians, because
// a single absurd match would otherwise squeeze all others into a point.
Normalisation normalisation_of(const Correspondences& pixels);

}  // namespace caransac

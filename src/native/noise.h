// Distances of inliers from a model.
#pragma once

#include <vector>

namespace caransac {

struct RightMatches {
    double count, median;
};

// Number of distances in excess of those expected from outliers, and their median. Outliers are assumed to have a
// uniform density, per length in one dimension and per area in two. Inliers are assumed to be closer than half of
// `near`.
RightMatches right_matches(std::vector<double> distances, double near, int dimensions);

// Width of a region of points divided by its length, by medians across and along it; small for a line. Uses up to
// `most` points, evenly spread among all.
double width(const double* u, const double* v, int n, int most);

}  // namespace caransac

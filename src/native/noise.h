// How far right matches are from a model.
#pragma once

#include <vector>

namespace caransac {

struct RightMatches {
    double count, median;
};

// How many of the distances are more than wrong matches would have, and their median. Wrong matches are as frequent at
// any distance (of one dimension; the area grows with the square), right ones are closer than half of `near`.
RightMatches right_matches(std::vector<double> distances, double near, int dimensions);

// Width of a region of points in its lengths, by medians across and along it: little for a line. At most `most` points,
// evenly spread among all, are asked.
double width(const double* u, const double* v, int n, int most);

}  // namespace caransac

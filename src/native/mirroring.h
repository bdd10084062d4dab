// Turns of neighbourhoods, which differ between an image and its mirror image.
#pragma once

#include "hot/points.h"

namespace caransac {

struct Turns {
    int opposite, decided;
};

// Each point and its neighbours of the ranks `rank` and `rank + 1` turn left or right in both images. Counts the points
// that turn in opposite directions, and those that turn in both images. Distances of neighbours are those in both
// images together. The time is quadratic in the number of points.
Turns count_turns(const Columns<double>& points, int rank);

}  // namespace caransac

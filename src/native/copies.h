// Matches that are copies of each other: the same place found at several scales, or by several matchers.
#pragma once

#include <vector>

#include "hot/points.h"

namespace caransac {

// Of every match the original: the first in the given order that is within `reach` of it in both coordinates of both
// images and is no copy itself. An original is its own. order: every index once.
std::vector<int> originals(const Columns<double>& points, const std::vector<int>& order, double reach);

}  // namespace caransac

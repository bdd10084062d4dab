// Values by their rank, as in a sorted list.
#pragma once

#include <cstddef>
#include <vector>

namespace caransac {

// rank: from 0, the least, to values.size() - 1.
double value_of_rank(std::vector<double> values, size_t rank);

// The mean of the two in the middle where their number is even; there must be one.
double median(std::vector<double> values);

}  // namespace caransac

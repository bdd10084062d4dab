// Which of many points, and which of many models, are worth more work.
#pragma once

#include <cstddef>
#include <vector>

namespace caransac {

// Indices of the `count` largest of n numbers, ascending, of equal ones the first; all where there are no more.
// Negative numbers and NaN count as zero.
std::vector<int> largest(const float* values, int n, int count);

// Indices of all numbers, the largest first, of equal ones the first.
std::vector<int> largest_first(const std::vector<double>& values);

// The first `count` rows of scores, in the given order, whose cosine with every one chosen before is below `same`. Rows
// have n scores each, `stride` apart.
std::vector<int> distinct_rows(const float* rows, size_t stride, int n, const std::vector<int>& order, int count,
                               double same);

}  // namespace caransac

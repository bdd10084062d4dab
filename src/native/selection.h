// Selection of points and models for more work.
#pragma once

#include <cstddef>
#include <vector>

namespace caransac {

// Indices of the `count` largest of n numbers, ascending; among equals, the first ones. All indices if n <= count.
// Negative numbers and NaN count as zero.
std::vector<int> largest(const float* values, int n, int count);

// Indices of all numbers, the largest first; among equals, the first one first.
std::vector<int> largest_first(const std::vector<double>& values);

// The first `count` rows of scores, in the given order, whose cosine with every previously chosen row is below `same`.
// Rows have n scores each and are `stride` apart.
std::vector<int> distinct_rows(const float* rows, size_t stride, int n, const std::vector<int>& order, int count,
                               double same);

}  // namespace caransac

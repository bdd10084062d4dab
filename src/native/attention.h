// What the state network gathers of the matches for every model.
#pragma once

namespace caransac {

// sums (k x c) = scores (k x n) rows (n x c), the same to the last bit on every run, which a matrix library that splits
// the sums among threads does not promise.
void gather_rows(const float* scores, int k, const float* rows, int n, int c, float* sums);

}  // namespace caransac

// Which of many points, and which of many models, are worth more work.
#pragma once

#include <vector>

namespace caransac {

// Indices of the `count` largest of n numbers, ascending, of equal ones the first; all where there are no more.
// Negative numbers and NaN count as zero.
std::vector<int> largest(const float* values, int n, int count);

// Rows of scores written one after the other, each kept only if its cosine with every one kept before is below `same`.
class Distinct {
  public:
    // rows has room for one row more than are kept, or for as many where no other is written.
    Distinct(float* rows, int n, double same) : rows_(rows), n_(n), same_(same) {}
    float* next() { return row(count()); }  // where to write the next one
    bool keep();                            // whether the row written there differs; the next one goes behind it then
    int count() const { return static_cast<int>(lengths_.size()); }

  private:
    float* row(int i) const { return rows_ + static_cast<long long>(i) * n_; }
    float* rows_;
    int n_;
    double same_;
    std::vector<double> lengths_;
};

}  // namespace caransac

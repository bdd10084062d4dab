// Minimal samples from a pool of point indices, without replacement inside a sample.
//
// Sample number s depends only on the seed and s (a counter-based generator). Batches may therefore be split, reordered
// or drawn by several threads, on any platform, and give the same samples.
#pragma once

#include <cstdint>

namespace caransac {

// A stream of random numbers for one sample: SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) from a hashed start.
class RandomStream {
  public:
    RandomStream(std::uint64_t seed, std::uint64_t sample);
    std::uint64_t next();
    int below(int n);  // uniform in 0 .. n - 1; the bias, n / 2^32, is far too small to be visible in a batch

  private:
    std::uint64_t state_;
};

// Draws samples first .. first + count - 1 of `size` indices each into samples (count x size).
// All pools have at least `size` entries; the caller checks that.

// Every subset of the pool is equally likely.
void sample_uniform(const int* pool, int pool_size, int size, std::uint64_t seed, std::uint64_t first, int count,
                    int* samples);

// PROSAC: the pool is ordered, best first. Sample s comes from a prefix that grows with s and reaches the whole pool
// after `horizon` samples. The newest member of the prefix is always part of the sample.
// O. Chum, J. Matas, "Matching with PROSAC", CVPR 2005.
void sample_prosac(const int* pool, int pool_size, int size, std::uint64_t seed, std::uint64_t first, int count,
                   double horizon, int* samples);

}  // namespace caransac

#include "sampler.h"

#include <algorithm>
#include <cmath>

namespace caransac {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

bool contains(const int* begin, int count, int value) {
    return std::find(begin, begin + count, value) != begin + count;
}

// `size` distinct positions in 0 .. n - 1 by Floyd's algorithm: `size` random numbers, no retries.
void distinct_positions(RandomStream& random, int n, int size, int* positions) {
    for (int i = 0; i < size; ++i) {
        const int last = n - size + i, candidate = random.below(last + 1);
        positions[i] = contains(positions, i, candidate) ? last : candidate;
    }
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t sample)
    : state_(mix(mix(seed + kGolden) ^ (sample * kGolden))) {}

std::uint64_t RandomStream::next() { return mix(state_ += kGolden); }

int RandomStream::below(int n) { return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32); }

void sample_uniform(const int* pool, int pool_size, int size, std::uint64_t seed, std::uint64_t first, int count,
                    int* samples) {
    for (int s = 0; s < count; ++s, samples += size) {
        RandomStream random(seed, first + s);
        distinct_positions(random, pool_size, size, samples);
        for (int i = 0; i < size; ++i) samples[i] = pool[samples[i]];
    }
}

void sample_prosac(const int* pool, int pool_size, int size, std::uint64_t seed, std::uint64_t first, int count,
                   double horizon, int* samples) {
    // The expected number of uniform samples inside a prefix of n points (T_n in the paper), and the sample at which
    // the prefix grows beyond n (T'_n).
    int n = size;
    double expected = horizon;
    for (int i = 0; i < size; ++i) expected *= static_cast<double>(size - i) / (pool_size - i);
    double grows_after = 1;
    for (std::uint64_t t = first + 1; t <= first + count; ++t) {
        while (static_cast<double>(t) > grows_after && n < pool_size) {
            const double larger = expected * (n + 1) / (n + 1 - size);
            grows_after += std::ceil(larger - expected);
            expected = larger;
            ++n;
        }
        RandomStream random(seed, t - 1);
        if (static_cast<double>(t) > grows_after) {  // the whole pool is in: uniform from here on
            distinct_positions(random, n, size, samples);
        } else {
            distinct_positions(random, n - 1, size - 1, samples);
            samples[size - 1] = n - 1;
        }
        for (int i = 0; i < size; ++i) samples[i] = pool[samples[i]];
        samples += size;
    }
}

}  // namespace caransac

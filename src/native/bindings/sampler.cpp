// Minimal samples.
#include "sampler.h"

#include "arrays.h"

namespace caransac {
namespace {

using namespace nb::literals;

// Draws samples with draw(pool, out) into a (count, size) array.
template <class Draw>
Out<int> draw_samples(const Indices& pool, int size, int count, std::uint64_t first, Draw draw) {
    const size_t pool_size = count_of(pool.shape(0));
    require(0 <= count && count <= 100'000'000, "count must be from 0 to a hundred million");
    require(size > 0 && static_cast<size_t>(size) <= pool_size, "size must be positive and at most the pool's size");
    require(first <= std::uint64_t{1} << 62, "first must be at most 2^62");  // sample numbers never wrap around
    const size_t total = static_cast<size_t>(count) * size;
    Buffer<int> result(total);
    {
        LockRelease release;
        draw(pool.data(), static_cast<int>(pool_size), result.data());
    }
    return std::move(result).to_numpy({static_cast<size_t>(count), static_cast<size_t>(size)});
}

Out<int> uniform(const Indices& pool, int size, int count, std::uint64_t seed, std::uint64_t first) {
    return draw_samples(pool, size, count, first, [&](const int* members, int pool_size, int* out) {
        sample_uniform(members, pool_size, size, seed, first, count, out);
    });
}

Out<int> prosac(const Indices& pool, int size, int count, std::uint64_t seed, std::uint64_t first, double horizon) {
    require(horizon > 0, "horizon must be positive");
    return draw_samples(pool, size, count, first, [&](const int* members, int pool_size, int* out) {
        sample_prosac(members, pool_size, size, seed, first, count, horizon, out);
    });
}

}  // namespace

void bind_sampler(nb::module_& m) {
    const auto pool = "pool"_a.noconvert();  // indices of another type would be converted silently
    m.def(
        "sample_uniform", &uniform, pool, "size"_a, "count"_a, nb::kw_only(), "seed"_a, "first"_a = 0,
        "Return samples (count, size) of distinct members of a pool; every subset is equally likely.\n\n"
        "Sample number first + i depends only on the seed and that number: batches can be drawn in any order, by any\n"
        "number of threads and on any platform.");
    m.def("sample_prosac", &prosac, pool, "size"_a, "count"_a, nb::kw_only(), "seed"_a, "first"_a = 0,
          "horizon"_a = 200'000.0,
          "Return samples like `sample_uniform`, but from a growing prefix of a pool ordered best first (PROSAC).\n\n"
          "After `horizon` samples the prefix is the whole pool.");
}

}  // namespace caransac

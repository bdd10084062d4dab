"""Samples: distinct, from the pool, with the right distribution, and identical on all platforms."""

import itertools

import numpy as np
import pytest

from caransac import kernels
from caransac.robust.loop.sampling import sampling_pool
from caransac.tuning import DEFAULT_TUNING, Tuning

pytestmark = pytest.mark.kernels

DRAWS = {
    "uniform": lambda pool, size, count, **kw: kernels.sample_uniform(pool, size, count, **kw),
    "prosac": lambda pool, size, count, **kw: kernels.sample_prosac(pool, size, count, **kw),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize(("pool_size", "size"), [(5, 5), (6, 5), (7, 7), (100, 5), (4000, 7)])
def test_samples_are_distinct_members_of_the_pool(kind, pool_size, size):
    pool = 3 * np.arange(pool_size, dtype=np.int32) + 1
    samples = DRAWS[kind](pool, size, 500, seed=5)
    assert samples.shape == (500, size)
    assert np.isin(samples, pool).all()
    assert all(len(set(sample)) == size for sample in samples.tolist())


@pytest.mark.parametrize("kind", DRAWS)
def test_samples_depend_on_seed_and_number_only(kind):
    pool = np.arange(200, dtype=np.int32)
    whole = DRAWS[kind](pool, 5, 300, seed=9)
    parts = [DRAWS[kind](pool, 5, 100, seed=9, first=first) for first in (0, 100, 200)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, DRAWS[kind](pool, 5, 300, seed=10))


def test_the_generator_is_the_same_on_every_platform():
    samples = kernels.sample_uniform(np.arange(1000, dtype=np.int32), 5, 2, seed=42)
    assert samples.tolist() == REFERENCE_SAMPLES


def splitmix(seed, sample):
    """Return the random numbers of a sample by a second implementation: SplitMix64 from a hashed start."""
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    state = mix(mix((seed + golden) & mask) ^ ((sample * golden) & mask))
    while True:
        state = (state + golden) & mask
        yield mix(state)


def floyd(random, n, size):
    chosen = []
    for last in range(n - size, n):
        candidate = ((next(random) >> 32) * (last + 1)) >> 32
        chosen.append(last if candidate in chosen else candidate)
    return chosen


REFERENCE_SAMPLES = [floyd(splitmix(42, sample), 1000, 5) for sample in range(2)]


def chi_square(observed, expected):
    return float(np.sum((observed - expected) ** 2 / expected))


def test_uniform_samples_are_uniform():
    count, subsets = 60_000, list(itertools.combinations(range(6), 3))
    samples = np.sort(kernels.sample_uniform(np.arange(6, dtype=np.int32), 3, count, seed=1), axis=1)
    observed = np.array([np.sum(np.all(samples == subset, axis=1)) for subset in subsets])
    # With 19 degrees of freedom, 99.9 % of all seeds give less than 43.8.
    assert chi_square(observed, np.full(len(subsets), count / len(subsets))) < 43.8


def test_prosac_grows_from_the_best_to_all():
    pool = np.arange(299, -1, -1, dtype=np.int32)
    samples = kernels.sample_prosac(pool, 5, 5000, seed=2, horizon=3000)
    rank = 299 - samples
    assert sorted(rank[0].tolist()) == [0, 1, 2, 3, 4]
    newest = rank.max(axis=1)
    assert np.all(np.diff(newest[:1000]) >= 0), "the newest member of the growing prefix is in every sample"
    assert newest[500] < 299
    assert np.unique(rank[3500:]).size == 300, "finally uniform over the whole pool"
    assert abs(rank[3500:].mean() - 149.5) < 5


def prosac_prefixes(pool_size, size, count, horizon):
    """Return the length of the prefix of each sample, computed by the paper's recurrences for T_n and T'_n."""
    n, expected, grows_after, prefixes = size, horizon, 1, []
    for i in range(size):
        expected *= (size - i) / (pool_size - i)
    for t in range(1, count + 1):
        if t > grows_after and n < pool_size:
            larger = expected * (n + 1) / (n + 1 - size)
            grows_after += int(np.ceil(larger - expected))
            expected, n = larger, n + 1
        prefixes.append(n if t <= grows_after else 0)  # 0 for uniform sampling
    return np.array(prefixes)


@pytest.mark.parametrize(
    ("pool_size", "size", "horizon"), [(300, 5, 3000), (50, 7, 500), (8, 7, 100), (2000, 5, 200_000)]
)
def test_prosac_grows_on_schedule(pool_size, size, horizon):
    newest = kernels.sample_prosac(np.arange(pool_size, dtype=np.int32), size, 3000, seed=4, horizon=horizon).max(
        axis=1
    )
    prefixes = prosac_prefixes(pool_size, size, 3000, horizon)
    growing = prefixes > 0
    assert growing.sum() > 50
    assert np.array_equal(newest[growing], prefixes[growing] - 1)


def test_prosac_starts_anywhere_at_once():
    far = kernels.sample_prosac(np.arange(100, dtype=np.int32), 5, 3, seed=0, first=2**62)
    assert far.shape == (3, 5)


def test_impossible_draws_are_refused():
    with pytest.raises(ValueError, match="size"):
        kernels.sample_uniform(np.arange(4, dtype=np.int32), 5, 1, seed=0)
    with pytest.raises(ValueError, match="count"):
        kernels.sample_uniform(np.arange(4, dtype=np.int32), 3, -1, seed=0)
    with pytest.raises(ValueError, match="horizon"):
        kernels.sample_prosac(np.arange(6, dtype=np.int32), 3, 1, seed=0, horizon=0.0)
    for draw in DRAWS.values():
        with pytest.raises(ValueError, match="first"):
            draw(np.arange(6, dtype=np.int32), 3, 1, seed=0, first=2**64 - 2)


def test_the_pool_of_a_round_matches_the_paper(rng):
    """If all matches were as probable as the worst of the pool, 256 samples of five would fail in one round of ten."""
    probabilities = rng.uniform(size=1000).astype(np.float32)
    pool = sampling_pool(probabilities, 5, 256, DEFAULT_TUNING)
    least = (1 - 0.1 ** (1 / 256)) ** (1 / 5)
    assert 0.38 < least < 0.4
    assert np.array_equal(pool, np.flatnonzero(probabilities > least))
    surer = sampling_pool(probabilities, 5, 256, Tuning(pool_success=0.99))
    assert probabilities[surer].min() > probabilities[pool].min()
    assert len(sampling_pool(probabilities, 5, 10_000, DEFAULT_TUNING)) > len(pool)


def test_a_pool_has_the_most_likely_matches_if_few_are_likely(rng):
    probabilities = rng.permutation(np.linspace(0, 0.3, 100)).astype(np.float32)
    pool = sampling_pool(probabilities, 5, 256, DEFAULT_TUNING)
    assert sorted(pool) == sorted(np.argsort(-probabilities)[:15])
    assert len(sampling_pool(probabilities, 5, 256, Tuning(min_pool=30))) == 30

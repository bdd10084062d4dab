"""Selection of the most promising points, and their regions."""

import numpy as np
import pytest

from caransac import kernels


@pytest.mark.parametrize("count", [0, 1, 10, 99, 100, 1000])
def test_the_most_likely_points_have_the_largest_probabilities(rng, count):
    probabilities = rng.permutation(100).astype(np.float32) / 100
    expected = np.sort(np.argsort(-probabilities)[:count])
    assert np.array_equal(kernels.most_likely(probabilities, count), expected)


def test_the_first_of_equal_values_are_chosen():
    probabilities = np.array([0.5, 0.9, 0.5, 0.5, 0.1], np.float32)
    assert kernels.most_likely(probabilities, 3).tolist() == [0, 1, 2]
    assert kernels.most_likely(np.ones(9, np.float32), 4).tolist() == [0, 1, 2, 3]


def test_nan_is_chosen_last():
    probabilities = np.array([np.nan, 0.1, np.nan, 0.2, -np.inf], np.float32)
    assert kernels.most_likely(probabilities, 2).tolist() == [1, 3]
    assert len(kernels.most_likely(np.full(9, np.nan, np.float32), 4)) == 4
    assert len(kernels.most_likely(np.empty(0, np.float32), 4)) == 0
    with pytest.raises(ValueError, match="count must not be negative"):
        kernels.most_likely(probabilities, -1)


@pytest.mark.parametrize("num_points", [0, 1, 15, 64, 203])
def test_inner_products_match_numpy(rng, num_points):
    rows, row = rng.uniform(size=(7, num_points)).astype(np.float32), rng.uniform(size=num_points).astype(np.float32)
    assert np.allclose(kernels.inner_products(rows, row), rows @ row, rtol=1e-5)
    assert kernels.inner_products(rows[:0], row).shape == (0,)
    with pytest.raises(ValueError, match="as long as rows"):
        kernels.inner_products(rows, np.ones(num_points + 1, np.float32))


@pytest.mark.parametrize("num_points", [3, 200, 1001])
def test_widths_are_ratios_of_medians_across_and_along(rng, num_points):
    along, across = rng.uniform(-1, 1, (2, num_points)) * [[1.0], [0.1]]
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    region = np.stack([along, across], axis=1) @ turn.T + 5
    everywhere = rng.normal(size=(num_points, 2))
    narrow, wide = kernels.widths(kernels.pack(region, everywhere), num_points)
    chosen = region - np.median(region, axis=0)
    axes = np.linalg.eigh(chosen.T @ chosen)[1]
    lengths = np.median(np.abs(chosen @ axes), axis=0)
    assert narrow == pytest.approx(lengths[0] / lengths[1])
    assert narrow < wide or num_points == 3


def test_widths_of_few_points_are_finite():
    for count in (0, 1, 2):
        assert kernels.widths(kernels.pack(np.ones((count, 2)), np.ones((count, 2))), 256) == (0.0, 0.0)
    with pytest.raises(ValueError, match="most must be positive"):
        kernels.widths(kernels.pack(np.ones((2, 2)), np.ones((2, 2))), 0)

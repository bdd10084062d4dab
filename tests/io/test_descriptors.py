"""Nearest neighbours and their ratios, compared with the complete distance matrix."""

import numpy as np
import pytest

from caransac.io import descriptors


@pytest.mark.parametrize("block", [7, 1024])
def test_matching_agrees_with_brute_force(rng, monkeypatch, block):
    monkeypatch.setattr(descriptors, "BLOCK", block)
    bits1, bits2 = (rng.integers(0, 256, (count, 8)).astype(np.uint8) for count in (40, 50))
    bits2[5:25] = bits1[:20] ^ (rng.random((20, 8)) < 0.3)
    vectors1, vectors2 = (np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1 for bits in (bits1, bits2))
    index1, index2, ratios = descriptors.match_vectors(vectors1[::-1][::-1], np.asfortranarray(vectors2))
    different = np.unpackbits(bits1[:, None] ^ bits2[None], axis=2).sum(axis=2)
    nearest, back = different.argmin(axis=1), different.argmin(axis=0)
    mutual = [i for i in range(40) if back[nearest[i]] == i]
    assert index1.tolist() == mutual
    assert index2.tolist() == nearest[mutual].tolist()
    ordered = np.sort(different[mutual], axis=1)
    np.testing.assert_allclose(ratios, ordered[:, 0] / ordered[:, 1])


def test_the_products_at_a_time_are_bounded(rng, monkeypatch):
    vectors1, vectors2 = (rng.normal(size=(count, 8)).astype(np.float32) for count in (300, 500))
    whole = descriptors.match_vectors(vectors1, vectors2)
    monkeypatch.setattr(descriptors, "MOST_PRODUCTS", 5000)
    blocks = [products.shape for _, products in descriptors._scalar_products(vectors1, vectors2)]
    assert set(blocks) == {(10, 500)}
    assert sum(rows for rows, _ in blocks) == 300
    for found, expected in zip(descriptors.match_vectors(vectors1, vectors2), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    monkeypatch.setattr(descriptors, "MOST_PRODUCTS", 1)  # less than the products of one descriptor
    assert len(descriptors.match_vectors(vectors1, vectors2)[0]) == len(whole[0])


def test_a_single_candidate_has_ratio_one():
    index1, index2, ratios = descriptors.match_vectors(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[1:2])
    assert (index1.tolist(), index2.tolist(), ratios.tolist()) == ([1], [0], [1.0])


@pytest.mark.parametrize("block", [7, 1024])
def test_ratios_match_the_full_distance_matrix(rng, monkeypatch, block):
    monkeypatch.setattr(descriptors, "BLOCK", block)
    first, second = rng.integers(0, 120, (1100, 128), np.uint8), rng.integers(0, 120, (150, 128), np.uint8)
    partners = rng.integers(0, 150, 1100)
    first[:5] = second[partners[:5]]  # an exact match
    second[partners[1] - 1] = second[partners[1]]  # one of them has a second exact match
    distances = np.sqrt(((first[:, None].astype(int) - second[None, :]) ** 2).sum(axis=2))
    own = distances[np.arange(1100), partners].copy()
    distances[np.arange(1100), partners] = np.inf
    others = distances.min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.where(others > 0, np.minimum(own / others, 1), 1)
    np.testing.assert_allclose(descriptors.match_ratios(first, second, partners), expected, atol=1e-6)
    assert descriptors.match_ratios(first[:3], second[:1], [0, 0, 0]).tolist() == [1, 1, 1]


def test_both_ratios_are_equal_if_both_are_defined(rng):
    vectors1, vectors2 = (rng.choice([-1, 1], (count, 64)).astype(np.float32) for count in (40, 50))
    index1, index2, ratios_sq = descriptors.match_vectors(vectors1, vectors2)
    np.testing.assert_allclose(
        descriptors.match_ratios(vectors1[index1], vectors2, index2), np.sqrt(ratios_sq), rtol=1e-6
    )


def test_no_descriptors_no_ratios():
    none = np.empty((0, 128), np.uint8)
    assert descriptors.match_ratios(none, none, np.empty(0, int)).shape == (0,)
    assert [part.shape for part in descriptors.match_vectors(none, none)] == [(0,)] * 3

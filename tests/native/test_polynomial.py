"""Real roots of polynomials with known roots."""

import numpy as np
import pytest

from caransac import kernels

pytestmark = pytest.mark.kernels


def coefficients(roots, complex_pairs=(), width=11, scale=1.0):
    all_roots = [*roots, *complex_pairs, *np.conj(complex_pairs)]
    polynomial = scale * np.real(np.polynomial.polynomial.polyfromroots(all_roots))
    return np.pad(polynomial, (0, width - len(polynomial)))


def roots_of(polynomial):
    found = kernels.real_roots(polynomial[None])[0]
    return np.sort(found[np.isfinite(found)])


@pytest.mark.parametrize("width", [4, 11])
def test_random_roots_come_back(rng, width):
    degree = width - 1
    for _ in range(300):
        num_pairs = rng.integers(0, degree // 2 + 1)
        roots = rng.standard_cauchy(degree - 2 * num_pairs)
        pairs = rng.normal(size=num_pairs) + 1j * rng.uniform(0.3, 2, num_pairs)
        found = roots_of(coefficients(roots, pairs, width, scale=10.0 ** rng.uniform(-6, 6)))
        assert len(found) == len(roots)
        assert np.allclose(found, np.sort(roots), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("roots", "width"),
    [
        ([-0.5, 0.5], 4),
        ([-0.5, 0, 0.5], 4),
        ([-1, 1, 2], 4),
        ([-1], 4),
        ([0], 4),
        ([-2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 4], 11),
        ([0.125, 3], 11),
        ([], 4),
        ([], 11),
    ],
)
def test_round_roots_and_lower_degrees(roots, width):
    assert np.allclose(roots_of(coefficients(roots, width=width)), roots, atol=1e-9)


@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-3])
def test_close_roots_are_separated(rng, gap):
    for _ in range(100):
        middle = np.tan(rng.uniform(-1.5, 1.5))
        roots = middle + gap * (1 + middle**2) * np.array([-1, 0, 1.3])  # equally close near infinity and near zero
        pairs = rng.normal(size=3) + 1j * rng.uniform(0.5, 2, 3)
        for found in (roots_of(coefficients(roots, width=4)), roots_of(coefficients(roots, pairs))):
            assert len(found) == 3
            assert np.all(np.abs(np.arctan(found) - np.arctan(np.sort(roots))) < 0.1 * gap)


def test_roots_do_not_depend_on_the_polynomials_beside(rng):
    polynomials = rng.normal(size=(300, 11))
    polynomials[::7, 10] *= 1e-13
    polynomials[::11, 3:] = 0
    polynomials[::17] = np.nan
    together = kernels.real_roots(polynomials)
    alone = [kernels.real_roots(polynomial[None])[0] for polynomial in polynomials]
    assert np.array_equal(together, alone, equal_nan=True)
    assert np.isfinite(together).any(axis=1).sum() > 100


@pytest.mark.parametrize("eps", [1e-8, 1e-12, 1e-14, 1e-16, 0.0])
def test_a_distant_root_does_not_affect_the_others(rng, eps):
    for _ in range(100):
        roots = np.sort(rng.uniform(-3, 3, 3))
        if np.diff(roots).min() < 0.05:
            continue
        near = np.polynomial.polynomial.polyfromroots(roots)
        found = roots_of(np.r_[np.convolve(near, [1, -eps]), np.zeros(6)])
        assert np.allclose(found[np.abs(found) < 100], roots, atol=1e-5)


@pytest.mark.parametrize("bad", [np.zeros(11), np.full(11, np.nan), np.full(4, np.inf), np.r_[np.nan, np.ones(10)]])
def test_degenerate_polynomials_have_no_roots(bad):
    assert len(roots_of(bad)) == 0


def test_other_degrees_are_refused():
    with pytest.raises(ValueError, match="columns"):
        kernels.real_roots(np.ones((2, 5)))

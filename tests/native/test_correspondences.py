"""Correspondences packed for the kernels: complete, finite, and safe to share."""

import numpy as np
import pytest

from caransac import kernels

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100])
def test_points_are_returned_unchanged(rng, count):
    points1, points2 = rng.normal(size=(2, count, 2))
    packed = kernels.pack(points1, points2)
    assert len(packed) == count
    assert np.array_equal(packed.points1, points1)
    assert np.array_equal(packed.points2, points2)


def test_packed_points_do_not_change_with_the_arrays(rng):
    points1, points2 = rng.normal(size=(2, 10, 2))
    packed = kernels.pack(points1, points2)
    before = points1.copy()
    points1[:] = np.nan
    packed.points1[:] = 7  # this changes only a copy
    assert np.array_equal(packed.points1, before)


def test_a_subset_has_the_requested_order(rng):
    points1, points2 = rng.normal(size=(2, 40, 2))
    index = np.array([5, 3, 3, 39], np.int32)
    chosen = kernels.pack(points1, points2).subset(index)
    assert np.array_equal(chosen.points1, points1[index])
    assert np.array_equal(chosen.points2, points2[index])
    for wrong in (-1, 40):
        with pytest.raises(ValueError, match="indices of correspondences"):
            chosen.subset(np.array([wrong], np.int32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("image", [1, 2])
@pytest.mark.parametrize("place", [(0, 0), (16, 1)])
def test_points_that_are_not_finite_are_refused(rng, bad, image, place):
    points = rng.normal(size=(2, 17, 2))
    points[(image - 1, *place)] = bad
    with pytest.raises(ValueError, match=f"points{image} must be finite"):
        kernels.pack(*points)


def test_unequal_lengths_and_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="same length"):
        kernels.pack(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(TypeError):
        kernels.pack(np.zeros((3, 3)), np.zeros((3, 3)))


def test_calibrated_points_are_normalised_image_coordinates(rng):
    pixels1, pixels2 = rng.uniform(0, 1000, size=(2, 40, 2))
    rays = kernels.calibrate(pixels1, pixels2, np.array([[900, 910, 320, 240], [500, 510, 330, 250.0]]))
    assert np.array_equal(rays.points1, (pixels1 - (320, 240)) / (900, 910))
    assert np.array_equal(rays.points2, (pixels2 - (330, 250)) / (500, 510))
    with pytest.raises(ValueError, match="intrinsics must leave the points finite"):
        kernels.calibrate(pixels1, pixels2, np.zeros((2, 4)))


ORDERS = {
    "random": lambda rng, n: rng.normal(size=(2, n, 2)),
    "sorted": lambda rng, n: np.sort(rng.normal(size=(2, n, 2)), axis=1),
    "rising and falling": lambda _, n: np.minimum(np.arange(n), n - np.arange(n))[None, :, None] * np.ones((2, n, 2)),
    "of two values": lambda rng, n: rng.integers(0, 2, size=(2, n, 2)).astype(float),
    "mostly one": lambda rng, n: np.where(rng.random((2, n, 2)) < 0.1, rng.normal(size=(2, n, 2)), 0.5),
    "some absurd": lambda rng, n: rng.normal(size=(2, n, 2)) * 10.0 ** rng.integers(0, 12, size=(2, n, 2)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 1000, 5001])
def test_normalised_pixels_are_centred_and_scaled_by_medians(rng, order, count):
    both = 300 * ORDERS[order](rng, count) + 500
    normalised, centres, scale = kernels.normalise(*both)
    assert np.array_equal(centres, np.median(both, axis=1))
    shifted = both - centres[:, None]
    spread = np.median(np.abs(shifted))
    assert scale == (0.5 / spread if spread > 1e-6 else 1)
    assert np.array_equal([normalised.points1, normalised.points2], shifted * scale)


def test_no_pixels_are_normalised_as_well():
    normalised, centres, scale = kernels.normalise(*np.empty((2, 0, 2)))
    assert (len(normalised), centres.tolist(), scale) == (0, [[0, 0], [0, 0]], 1)


def test_numbers_that_overflow_are_refused_when_they_are_normalised():
    with pytest.raises(ValueError, match="finite"):
        kernels.normalise(*np.array([[[-1.7e308, 0], [1.7e308, 0], [1.7e308, 0]]] * 2))


def test_regions_cut_each_image_into_a_grid(rng):
    points1, points2 = rng.uniform(size=(2, 4000, 2))
    cells = kernels.Regions(kernels.pack(points1, points2), np.ones(4000, np.float32), 0.0).cells
    assert cells.shape == (2, 4000)
    for own, points in zip(cells, (points1, points2), strict=True):
        low, high = np.quantile(points[:: max(len(points) // 1024, 1)], [0.01, 0.99], axis=0)
        column, row = np.clip((points - low) / (high - low) * 16, 0, 15).astype(int).T
        assert np.mean(own == 16 * row + column) > 0.99  # points on a border may differ
    one_place, nothing = (kernels.pack(np.ones((count, 2)), np.ones((count, 2))) for count in (5, 0))
    assert len(set(kernels.Regions(one_place, np.ones(5, np.float32), 0.0).cells.ravel())) == 1
    assert kernels.Regions(nothing, np.empty(0, np.float32), 0.0).cells.shape == (2, 0)


def test_weights_of_regions_are_checked(rng):
    points = kernels.pack(*rng.normal(size=(2, 5, 2)))
    with pytest.raises(ValueError, match="weights must have one entry for every correspondence"):
        kernels.Regions(points, np.ones(4, np.float32), 0.0)
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights must be finite and not negative"):
            kernels.Regions(points, np.array([1, 1, wrong, 1, 1], np.float32), 0.0)
        with pytest.raises(ValueError, match="sharpness must be finite and not negative"):
            kernels.Regions(points, np.ones(5, np.float32), wrong)

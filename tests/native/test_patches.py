"""Patches of photographs: the kernel agrees with its formula and with the truth of rendered textures."""

import numpy as np
import pytest
from photographs import Texture

from caransac import kernels
from caransac.geometry.patch_alignment import PatchOptions, align_patch, smooth

OPTIONS = PatchOptions(radius=7, max_steps=8, max_step=1.0, max_shift=3.0, min_step=0.03, affine_deviation=0.3)
SIZE = 160, 200  # height and width


class Surface(Texture):
    """A texture, and its photographs."""

    def image(self, map_=((1, 0), (0, 1)), offset=(0, 0), size=SIZE):
        """Return the image in which map_ x + offset shows what image 1 shows at x."""
        rows, columns = np.mgrid[: size[0], : size[1]]
        pixels = np.stack([columns, rows], axis=-1).reshape(-1, 2).astype(float)
        return self((pixels - offset) @ np.linalg.inv(map_).T).reshape(size)


def as_uint8(grey):
    return np.clip(np.rint(grey), 0, 255).astype(np.uint8)


def align(image1, image2, points1, points2, maps, **changes):
    options = {**vars(OPTIONS), "level": 0, **changes}
    return kernels.align_patches(image1, image2, points1, points2, np.ascontiguousarray(maps, float), **options)


def errors_of(moved, truth):
    return np.linalg.norm(moved - truth, axis=1)


def scene(rng, map_, offset, count=200, margin=20, size=SIZE):
    """Return two images and true matches that are at least a margin away from both borders."""
    texture = Surface(rng)
    points1 = rng.uniform(margin, np.array(SIZE[::-1]) - margin, (20 * count, 2))
    points2 = points1 @ np.transpose(map_) + offset
    inside = ((points2 > margin) & (points2 < np.array(size[::-1]) - margin)).all(axis=1)
    images = as_uint8(texture.image()), as_uint8(texture.image(map_, offset, size))
    return images, points1[inside][:count], points2[inside][:count]


MAPS = {
    "shifted": ([[1, 0], [0, 1]], (3.3, -2.6)),
    "sheared": ([[1.1, 0.25], [-0.1, 0.9]], (-8.0, 12.0)),
    "turned by 180 degrees": ([[-1, 0], [0, -1]], (198.3, 158.1)),
}


@pytest.mark.parametrize("name", MAPS)
def test_the_kernel_agrees_with_its_formula(rng, name):
    map_, offset = np.array(MAPS[name][0], float), MAPS[name][1]
    images, points1, truth = scene(rng, map_, offset, count=60, margin=16)
    points2 = truth + rng.normal(size=truth.shape)
    for deviation in (0.3, 0.0):
        options = PatchOptions(**{**vars(OPTIONS), "affine_deviation": deviation})
        maps = map_ + 0.05 * rng.normal(size=(len(points1), 2, 2))
        moved, correlations, information, found, compared = align(
            *images, points1, points2, maps, affine_deviation=deviation
        )
        smoothed = smooth(images[0]), smooth(images[1])
        assert compared.sum() > 40
        for i in range(len(points1)):
            expected = align_patch(*smoothed, points1[i], points2[i], maps[i], options)
            assert compared[i] == (expected is not None)
            if expected is not None:
                assert moved[i] == pytest.approx(expected.point2, abs=1e-3)
                assert found[i].ravel() == pytest.approx(expected.map.ravel(), abs=1e-3)
                assert correlations[i] == pytest.approx([expected.before, expected.after], abs=1e-4)
                assert information[i] == pytest.approx(expected.information, abs=0.01 * np.trace(expected.information))


@pytest.mark.parametrize("name", MAPS)
def test_moved_keypoints_return_to_the_truth(rng, name):
    map_, offset = MAPS[name]
    images, points1, truth = scene(rng, map_, offset)
    points2 = truth + rng.normal(size=truth.shape)
    moved, *_, compared = align(*images, points1, points2, np.tile(map_, (len(points1), 1, 1)))
    assert compared.mean() > 0.9
    error = errors_of(moved, truth)[compared]
    assert np.median(error) < 0.03
    assert np.mean(error < errors_of(points2, truth)[compared]) > 0.98


@pytest.mark.parametrize("scale", [4.0, 0.25])
def test_a_change_of_scale_is_read_from_a_pyramid(rng, scale):
    size = (480, 600) if scale > 1 else (120, 150)
    first = (160, 200) if scale > 1 else (480, 600)
    texture = Surface(rng)
    texture.waves = texture.waves / max(1.0, 1 / scale)  # structures that both images resolve
    map_ = scale * np.eye(2)
    images = as_uint8(texture.image(size=first)), as_uint8(texture.image(map_, (0, 0), size))
    points1 = (
        rng.uniform(40, np.array(first[::-1]) - 40, (400, 2)) if scale < 1 else rng.uniform(25, (125, 95), (400, 2))
    )
    truth = points1 @ map_.T
    inside = ((truth > 12) & (truth < np.array(size[::-1]) - 12)).all(axis=1)
    points1, truth = points1[inside], truth[inside]
    points2 = truth + max(scale, 1.0) * 0.5 * rng.normal(size=truth.shape)
    moved, *_, compared = align(*images, points1, points2, np.tile(map_, (len(points1), 1, 1)))
    assert compared.mean() > 0.9
    # The error is that of the coarser image, in which a pixel of image 2 is `scale` pixels wide if it is enlarged.
    assert np.median(errors_of(moved, truth)[compared]) < 0.06 * max(scale, 1.0)


def test_a_pyramid_level_is_a_reduced_photograph(rng):
    map_, offset = MAPS["sheared"]
    images, points1, truth = scene(rng, map_, offset, count=80)
    points2, maps = truth + rng.normal(size=truth.shape), np.tile(map_, (80, 1, 1))
    enlarged = [np.repeat(np.repeat(image, 4, axis=0), 4, axis=1) for image in images]
    expected = align(*images, points1, points2, maps)
    found = align(*enlarged, 4 * points1 + 1.5, 4 * points2 + 1.5, maps, level=2)
    for one, other, scale in zip(expected, found, (4, 1, 1 / 16, 1, 1), strict=True):
        np.testing.assert_allclose(other, scale * one + (1.5 if scale == 4 else 0), atol=1e-6)
    twice = align(images[0], enlarged[1], points1, 4 * points2 + 1.5, 4 * np.array(map_)[None].repeat(80, axis=0))
    assert np.median(errors_of(twice[0], 4 * truth + 1.5)[twice[-1]]) < 0.2
    for level in (-1, 4):
        with pytest.raises(ValueError, match="level"):
            align(*images, points1, points2, maps, level=level)


def test_every_kind_of_image_gives_the_same_points(rng):
    map_, offset = MAPS["sheared"]
    images, points1, truth = scene(rng, map_, offset, count=50)
    points2, maps = truth + 0.7 * rng.normal(size=truth.shape), np.tile(map_, (50, 1, 1))
    expected = align(*images, points1, points2, maps)
    wide = [np.repeat(np.repeat(image, 2, axis=0), 2, axis=1)[::2, ::2] for image in images]  # strides
    assert not wide[0].flags.c_contiguous
    colours = [np.stack([image, image, image], axis=2) for image in images]
    for others in (
        [image.astype(np.uint16) for image in images],
        [image.astype(np.float32) for image in images],
        [image.astype(float) for image in images],
        [np.asfortranarray(image) for image in images],
        [image[::-1][::-1] for image in images],
        wide,
        colours,
        [colour.transpose(1, 0, 2).copy().transpose(1, 0, 2) for colour in colours],
        [image[:, :, None] for image in images],
    ):
        for one, other in zip(expected, align(*others, points1, points2, maps), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-3)
    brighter = [30000 + 100 * image.astype(np.uint16) for image in images]  # contrast and brightness do not matter
    np.testing.assert_allclose(align(*brighter, points1, points2, maps)[0], expected[0], atol=2e-3)


def test_flat_patches_are_left_alone(rng):
    images = [np.full(SIZE, 255, np.uint8)] * 2  # overexposed
    points = rng.uniform(30, 120, (50, 2))
    moved, _, _, _, compared = align(*images, points, points, np.tile(np.eye(2), (50, 1, 1)))
    assert not compared.any()
    np.testing.assert_array_equal(moved, points)


def test_an_edge_has_information_about_one_direction(rng):
    columns = np.broadcast_to(np.arange(SIZE[1]), SIZE)
    image1 = as_uint8(128 + 80 * np.tanh((columns - 100) / 2) + rng.normal(size=SIZE))
    image2 = as_uint8(128 + 80 * np.tanh((columns - 101.5) / 2) + rng.normal(size=SIZE))
    points = np.stack([rng.uniform(98, 102, 40), rng.uniform(30, 130, 40)], axis=1)
    moved, correlations, information, _, compared = align(
        image1, image2, points, points, np.tile(np.eye(2), (40, 1, 1))
    )
    assert compared.all() and (correlations[:, 1] > 0.95).all()
    across = moved[:, 0] - points[:, 0]
    assert np.median(np.abs(across - 1.5)) < 0.1 and np.abs(across - 1.5).max() < 0.3
    assert np.abs(moved[:, 1] - points[:, 1]).max() < 1.0  # the prior keeps what the edge does not show
    assert (information[:, 0, 0] > 50 * information[:, 1, 1]).all()


def test_the_information_predicts_the_error(rng):
    map_, offset = MAPS["shifted"]
    images, points1, truth = scene(rng, map_, offset, count=400)
    louder = np.linspace(2, 30, SIZE[1])  # noise grows from left to right
    images = [as_uint8(image + louder * rng.normal(size=image.shape)) for image in images]
    points2 = truth + 0.5 * rng.normal(size=truth.shape)
    moved, _, information, _, compared = align(*images, points1, points2, np.tile(map_, (len(points1), 1, 1)))
    error = (moved - truth)[compared]
    squares = np.einsum("ni,nij,nj->n", error, information[compared], error)
    # Real errors of neighbouring pixels are alike, so the information is smaller than independent noise allows.
    assert 0.03 < np.median(squares) / 1.386 < 1  # 1.386 is the median of chi-squared with two degrees of freedom
    lengths = np.linalg.norm(error, axis=1)[np.argsort(-np.linalg.det(information[compared]))]
    third = len(lengths) // 3
    assert np.median(lengths[:third]) < 0.5 * np.median(lengths[-third:])


def test_patches_at_the_border_use_the_part_inside(rng):
    images, _, _ = scene(rng, np.eye(2), (0.0, 0.0))
    points = np.stack([rng.uniform(0, 199, 300), rng.uniform(0, 159, 300)], axis=1)
    start = np.clip(points + 0.5 * rng.normal(size=points.shape), 0, (199, 159))
    moved, correlations, _, _, compared = align(*images, points, start, np.tile(np.eye(2), (300, 1, 1)))
    near = (points < 5).any(axis=1) | (points > (194, 154)).any(axis=1)
    good = compared & (correlations[:, 1] > 0.7)
    assert good[near].mean() > 0.5
    assert np.median(errors_of(moved, points)[good & near]) < 0.1
    assert not align(*images, points, points + np.array([1000, 0]), np.tile(np.eye(2), (300, 1, 1)))[-1].any()


def test_unrelated_patches_do_not_agree(rng):
    images = as_uint8(Surface(rng).image()), as_uint8(Surface(rng).image())
    points = rng.uniform(20, 140, (300, 2))
    _, correlations, _, _, compared = align(*images, points, points, np.tile(np.eye(2), (300, 1, 1)))
    assert np.mean(compared & (correlations[:, 1] > 0.7)) < 0.2


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e-9, 1e9, -1e300])
def test_maps_that_no_camera_makes_are_refused(rng, value):
    images, points1, points2 = scene(rng, np.eye(2), (0.0, 0.0), count=5)
    assert not align(*images, points1, points2, np.full((5, 2, 2), value))[-1].any()
    assert not align(*images, points1, points2, np.tile([[value, 0], [0, 1]], (5, 1, 1)))[-1].any()


def test_tiny_images_are_read_within_their_bounds(rng):
    for size in ((1, 1), (1, 50), (50, 1), (3, 4)):
        image = rng.integers(0, 255, size, dtype=np.uint8)
        points = rng.uniform(0, 1, (20, 2)) * (size[1] - 1, size[0] - 1)
        align(image, image, points, points, np.tile(np.eye(2), (20, 1, 1)))
        align(image, image, points, points, np.tile(4 * np.eye(2), (20, 1, 1)))


def test_local_maps_of_an_affine_field_are_exact(rng):
    map_ = np.array([[1.2, 0.3], [-0.2, 0.8]])
    points = rng.uniform(0, 1000, (300, 2))
    maps = kernels.local_maps(points, points @ map_.T + (5, 7), 12)
    np.testing.assert_allclose(maps, np.broadcast_to(map_, maps.shape), atol=1e-9)


def test_local_maps_follow_a_smooth_field_despite_wrong_neighbours(rng):
    points = rng.uniform(0, 1000, (2000, 2))
    turn = points[:, 0] / 2000  # the angle in radians changes along the image
    rotations = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], axis=1).reshape(-1, 2, 2)
    centre = np.array([0.0, 500.0])
    moved = np.einsum("nij,nj->ni", rotations, points - centre) + centre
    step = 1e-3
    slope = [
        (np.einsum("nij,nj->ni", _rotations((points + e)[:, 0] / 2000), points + e - centre) - (moved - centre)) / step
        for e in step * np.eye(2)
    ]
    truth = np.stack(slope, axis=2)
    wrong = rng.random(2000) < 0.1
    moved[wrong] += rng.uniform(-100, 100, (wrong.sum(), 2))
    error = np.abs(kernels.local_maps(points, moved, 12) - truth).max(axis=(1, 2))
    assert np.median(error[~wrong]) < 0.05


def _rotations(turn):
    return np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], axis=1).reshape(-1, 2, 2)


def test_local_maps_of_few_or_repeated_matches_are_finite(rng):
    for count in (0, 1, 2, 5):
        points = rng.uniform(0, 100, (count, 2))
        assert np.isfinite(kernels.local_maps(points, points, 12)).all()
    same = np.ones((3000, 2))
    assert np.isfinite(kernels.local_maps(same, same, 12)).all()
    line = np.stack([np.linspace(0, 1e6, 5000), np.zeros(5000)], axis=1)
    assert np.isfinite(kernels.local_maps(line, line, 12)).all()

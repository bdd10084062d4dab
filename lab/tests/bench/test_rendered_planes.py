"""Photographs of planes: the homography fits the images, and right matches are few."""

import numpy as np
import pytest

from caransac.synthetic import transfer
from caransac_lab.bench.rendered_planes import PATTERNS, make_texture, match_plane, photograph_plane

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def views():
    return photograph_plane(0, "noise")


def test_the_homography_maps_one_image_to_the_other(views):
    """The second image, warped by the true homography, looks like the first one. A shift of a pixel fits worse."""
    cv2 = pytest.importorskip("cv2")
    first, second = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(float) for image in views.images)
    inner = (views.corners - views.corners.mean(axis=0)) * 0.9 + views.corners.mean(axis=0)
    mask = np.zeros(first.shape, np.uint8)
    cv2.fillConvexPoly(mask, inner.astype(np.int32), 1)

    def likeness(shift):
        moved = np.array([[1.0, 0, shift], [0, 1, 0], [0, 0, 1]]) @ views.H
        back = cv2.warpPerspective(second, moved, first.shape[::-1], flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
        return np.corrcoef(first[mask == 1], back[mask == 1])[0, 1]

    assert likeness(0) > 0.8
    assert likeness(0) > max(likeness(-1), likeness(1))


def test_matches_on_the_plane_are_right_and_few(views):
    pair = match_plane(views, "rootsift", 2000, "name")
    right = pair.right_matches()
    assert 12 <= right.sum() < 0.5 * len(right)
    low, high = views.corners.min(axis=0) - 5, views.corners.max(axis=0) + 5
    assert np.all((pair.points1[right] > low) & (pair.points1[right] < high))
    assert pair.scores[right].mean() < pair.scores[~right].mean() - 0.1
    offsets = transfer(pair.H, pair.points1[right]) - pair.points2[right]
    assert np.abs(np.median(offsets, axis=0)).max() < 0.5


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_repeat_and_noise_does_not(pattern):
    texture = make_texture(np.random.default_rng(1), pattern, (2.0, 2.0))
    assert 0 <= texture.min() < texture.max() <= 1.1
    centred = texture - texture.mean()
    power = np.abs(np.fft.fft2(centred)) ** 2
    correlation = np.fft.ifft2(power).real / power.mean()
    far = correlation[12:-12, 12:-12].max()  # 0.12 m or more away
    assert (far > 0.45) == (pattern != "noise")


def test_the_same_seed_gives_the_same_photographs(views):
    again = photograph_plane(0, "noise")
    assert all(np.array_equal(a, b) for a, b in zip(views.images, again.images, strict=True))
    assert np.array_equal(views.H, again.H)

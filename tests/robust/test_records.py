"""Information about matches in addition to their points."""

import numpy as np
import pytest

from caransac.camera import Camera
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo


@pytest.mark.parametrize(("kind", "expected"), [("ratio", [2, 0, 3, 1]), ("confidence", [1, 0, 3, 2])])
def test_the_order_follows_the_direction_of_the_scores(kind, expected):
    info = MatchInfo(np.array([0.5, 0.9, 0.1, 0.5]), kind)
    assert info.order().tolist() == expected
    assert info.order(np.array([3, 1])).tolist() == ([0, 1] if kind == "ratio" else [1, 0])


def test_information_is_reduced_to_the_usable_matches(rng):
    camera = Camera("RADIAL", (500.0, 320.0, 240.0, -0.4, 0.05))
    pixels1, pixels2 = rng.uniform(200, 400, (2, 50, 2))
    pixels2[[3, 30]] = 1e5  # the camera has no ray for these pixels
    info = MatchInfo(np.arange(50.0), "confidence", np.arange(100.0).reshape(50, 2))
    used = info.of_usable(Essential.from_pixels(pixels1, pixels2, camera, camera).usable)
    assert np.array_equal(used.scores, np.delete(np.arange(50), [3, 30]))
    assert np.array_equal(used.features, np.delete(info.features, [3, 30], axis=0))
    assert used.score_kind == "confidence"
    assert MatchInfo().of_usable(Essential.from_pixels(pixels1, pixels2, camera, camera).usable).scores is None
    assert info.of_usable(Essential.from_pixels(pixels1, pixels1, camera, camera).usable) is info

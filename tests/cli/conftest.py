"""Fixture: a file of matches for the commands that read it."""

import pytest

from caransac.io.matches import Matches, write_matches
from caransac.synthetic import make_pair


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Matches without images. The file includes their cameras."""
    made = make_pair(num_points=400, outlier_ratio=0.4, seed=5)
    matches = Matches(made.points1, made.points2, made.scores, "ratio", made.camera1, made.camera2)
    return str(write_matches(tmp_path_factory.mktemp("matches") / "m.npz", matches)), made

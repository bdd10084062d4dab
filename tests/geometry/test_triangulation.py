"""Triangulated points of absurd matches."""

import numpy as np

from caransac import Camera
from caransac.geometry import rotation_from_vector
from caransac.geometry.triangulation import triangulate_matches


def test_points_of_absurd_matches_are_finite(rng):
    """Points next to a camera or nearly at infinity: three in a hundred had no finite error."""
    camera, count = Camera("SIMPLE_PINHOLE", (1.0, 0.0, 0.0), 1, 1), 0
    for _ in range(300):
        R = rotation_from_vector(rng.normal(size=3) * 10.0 ** rng.uniform(-17, 0))
        t = rng.normal(size=3) * (*10.0 ** rng.uniform(-20, 0, 2), 1.0)
        pixels1 = rng.normal(size=(5, 2)) * 10.0 ** rng.uniform(-150, 150, (5, 1))
        pixels2 = pixels1 * (1 + rng.normal(size=(5, 1)) * 10.0 ** rng.uniform(-17, 0, (5, 1)))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            points = triangulate_matches(
                R, t / np.linalg.norm(t), pixels1, pixels2, camera, camera, np.ones(5, np.bool_)
            )
        count += len(points)
        assert np.isfinite(points.error_px).all() and np.isfinite(points.xyz).all()
        assert np.isfinite(points.angle_deg).all()
    assert count > 300

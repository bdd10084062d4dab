"""Queries made from the pairs of a scene."""

import numpy as np
import pytest
from layouts import write_scene

from caransac import estimate_absolute_pose
from caransac_lab.datasets import read_queries
from caransac_lab.datasets.queries import read_query_images


@pytest.fixture
def scene(tmp_path, rng):
    return tmp_path / "data", *write_scene(tmp_path / "data" / "place", rng)


def test_keypoints_get_3d_points_only_from_third_images(scene):
    root, poses, points = scene
    queries = read_queries(root, references=1)
    assert [query.scene for query in queries] == ["place"] * 4 and {query.name for query in queries} == set(poses)
    for query in queries:
        R, t = poses[query.name]
        np.testing.assert_allclose(query.R, R)
        np.testing.assert_allclose(query.t, t)
        right = query.right_matches() > 0
        assert 0.6 < right.mean() < 1
        nearest = np.linalg.norm(query.points3d[right, None] - points[None], axis=2).min(axis=1)
        assert np.median(nearest) < 0.02
        found = estimate_absolute_pose(query.points2d, query.points3d, query.camera)
        assert query.error_deg(found.R, found.t) < 0.5


def test_more_references_give_more_matches_of_the_same_keypoints(scene):
    root = scene[0]
    one, three = (sum(len(q.points2d) for q in read_queries(root, references=n)) for n in (1, 3))
    assert three > 2 * one
    image = next(iter(read_query_images(root)))
    query = image.query(sorted(image.references))
    assert len(np.unique(query.points2d, axis=0)) < len(query.points2d)


def test_queries_are_the_same_every_time_and_limited(scene):
    first, second = (read_queries(scene[0], max_queries=2, seed=3) for _ in range(2))
    assert len(first) == 2
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.points3d, b.points3d)

"""Which models are refined and attended to."""

import numpy as np
from scenes import contaminated_scene

from caransac import kernels
from caransac.geometry import join_pose
from caransac.robust.problems import Essential
from caransac.robust.selection import likely_subset, most_supported


def test_a_likely_subset_has_the_most_probable_points(rng):
    problem = Essential(kernels.pack(*rng.normal(size=(2, 100, 2))), 1e-3)
    probabilities = rng.permutation(100).astype(np.float32)
    chosen = likely_subset(problem, probabilities, 10)
    assert chosen.num_points == 10
    wanted = problem.points1[probabilities >= 90]
    assert np.array_equal(np.sort(chosen.points1, axis=0), np.sort(wanted, axis=0))
    assert likely_subset(problem, probabilities, 100) is problem
    assert likely_subset(problem, np.ones(100, np.float32), 10).num_points == 10


def test_evidence_spread_over_the_images_counts_for_more_than_a_heap_of_it(rng):
    x1, x2, R, t, _ = contaminated_scene(rng, 600, outlier_ratio=0, noise=0)
    heap = np.linalg.norm(x1, axis=1) < np.quantile(np.linalg.norm(x1, axis=1), 0.35)
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    # The points of a heap follow one pose, as many others all over the images another one.
    follow = np.where(heap[:, None], x2, x2 @ turned[:2, :2].T)
    others = np.flatnonzero(~heap)[: int(0.95 * heap.sum())]
    chosen = np.concatenate([np.flatnonzero(heap), others])
    problem = Essential(kernels.pack(x1[chosen], follow[chosen]), 1e-3)
    models = np.stack([join_pose(R, t), join_pose(turned @ R, turned @ t)])
    totals = problem.msac_scores(models, problem.max_error).sum(axis=1)
    assert totals[0] > totals[1]
    best = most_supported(problem, models, problem.max_error)
    assert np.array_equal(best[0], models[1])

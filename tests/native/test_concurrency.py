"""Many threads on the same objects: identical results, and no reports of the thread sanitizer."""

import threading

import numpy as np
import pytest

from caransac import kernels
from caransac.kernels import FOCAL_POSES, FUNDAMENTALS, HOMOGRAPHIES, POSES, Activation, RefineOptions
from caransac.learned.state_network import load_network

pytestmark = pytest.mark.kernels

THREADS, TIMES = 4, 3


@pytest.fixture
def calls(rng):
    """Calls of all kernels, which share objects and arrays."""
    points, options = kernels.pack(*rng.normal(size=(2, 300, 2))), RefineOptions(max_residual=1.0)
    counted = rng.uniform(size=300).astype(np.float32)
    regions, samples = kernels.Regions(points, counted, 7.0), rng.integers(0, 300, (200, 7)).astype(np.int32)
    pool, five = np.arange(300, dtype=np.int32), np.ascontiguousarray(samples[:, :5])
    x, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((200, 20), (20, 20)))
    layers, weights = [(weight, weight[0], Activation.TANH, True)] * 2, rng.uniform(size=300)
    states, side = load_network("default").kernels, rng.normal(size=(300, 36))
    scores = rng.uniform(size=(4, 300)) * (rng.uniform(size=300) < 0.5)
    calls = [
        lambda: kernels.five_point_poses(points, five)[0],
        lambda: kernels.seven_point(points, samples)[0],
        lambda: kernels.four_point(points, np.ascontiguousarray(samples[:, :4]))[0],
        lambda: kernels.sample_prosac(pool, 5, 200, seed=1),
        lambda: kernels.neighbour_features(points),
        lambda: kernels.mlp([x], layers),
        lambda: np.column_stack(states.first(side)),
        lambda: np.column_stack(states.update(side[:, :16], scores)),
        lambda: points.subset(samples[0]).points1,
        lambda: kernels.Regions(points, counted, 7.0).cells,
    ]
    for kind in (POSES, FOCAL_POSES, FUNDAMENTALS, HOMOGRAPHIES):
        models = rng.normal(size=(3, 3, kind.columns))
        calls += [
            lambda kind=kind, models=models: kind.residuals_sq(models, points),
            lambda kind=kind, models=models: kind.spread_consensus(models, points, 0.5, regions),
            lambda kind=kind, models=models: kind.top(models, points, 0.5, 2),
            lambda kind=kind, models=models: kind.promising(models, points, 0.5, 2, options),
            lambda kind=kind, models=models: kind.most_distinct(models, points, 0.5, regions, 2, 0.9),
            lambda kind=kind, models=models: kind.refine(models, points, options, weights)[0],
            lambda kind=kind, models=models: kind.information(models[0], points, weights),
        ]
    return calls


def test_kernels_can_share_their_inputs(calls):
    expected = [call() for call in calls]
    wrong, start = [], threading.Barrier(THREADS)

    def work(number):
        start.wait()
        for i in range(TIMES * len(calls)):
            which = (i + 5 * number) % len(calls)  # threads run different calls at the same time
            if not np.array_equal(calls[which](), expected[which], equal_nan=True):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

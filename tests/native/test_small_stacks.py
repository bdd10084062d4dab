"""Kernels and estimates in threads with small stacks. Builds with sanitizers need more and skip these tests."""

import threading

import numpy as np

import caransac
from caransac import kernels
from caransac.kernels import (
    ABSOLUTE_FOCAL_POSES,
    ABSOLUTE_POSES,
    FOCAL_POSES,
    FUNDAMENTALS,
    HOMOGRAPHIES,
    POSES,
    Activation,
    RefineOptions,
)
from caransac.synthetic import make_pair, make_query

SMALL_STACK = 64 * 1024  # bytes; some systems give threads only 128 KB, and callers may request less


def on_a_small_stack(call):
    """Run a call in a thread with a small stack. A stack overflow would end the whole process."""
    answers = []
    before = threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=lambda: answers.append(call()))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return answers


def test_kernels_run_on_small_stacks(rng):
    points = kernels.pack(*rng.normal(size=(2, 700, 2)))
    regions = kernels.Regions(points, np.ones(700, np.float32), 7.0)
    samples = rng.integers(0, 700, (100, 7)).astype(np.int32)
    layers = [
        (np.zeros((inputs, 128), np.float32), np.zeros(128, np.float32), Activation.TANH, False)
        for inputs in (1024, 128)
    ]
    wide, last = (layers[1], (np.zeros((128, 1), np.float32), np.zeros(1, np.float32), Activation.NONE, False))
    affine = (*wide[:2], Activation.NONE, False)
    both = (np.zeros((256, 128), np.float32), *wide[1:])
    states = kernels.StateKernels(layers, [wide, last], [wide, affine], [wide, affine], [both, affine])
    calls = [
        lambda: kernels.five_point_poses(points, np.ascontiguousarray(samples[:, :5])),
        lambda: kernels.seven_point(points, samples),
        lambda: kernels.four_point(points, np.ascontiguousarray(samples[:, :4])),
        lambda: kernels.real_roots(np.ones((3, 11))),
        lambda: kernels.mlp([np.zeros((100, 1024), np.float32)], layers),
        lambda: states.first(np.zeros((100, 1024))),
        lambda: states.update(np.zeros((100, 128)), np.ones((1024, 100))),
        lambda: kernels.neighbour_features(points),
    ]
    space = kernels.pack_space(rng.normal(size=(700, 2)), rng.normal(size=(700, 3)))
    calls.append(lambda: kernels.three_point(space, np.ascontiguousarray(samples[:, :3])))
    for verbs in (POSES, FOCAL_POSES, FUNDAMENTALS, HOMOGRAPHIES, ABSOLUTE_POSES, ABSOLUTE_FOCAL_POSES):
        given = space if verbs in (ABSOLUTE_POSES, ABSOLUTE_FOCAL_POSES) else points
        models = rng.normal(size=(2, 3, verbs.columns))
        calls += [
            lambda verbs=verbs, models=models, p=given: verbs.refine(models, p, RefineOptions()),
            lambda verbs=verbs, models=models, p=given: verbs.refine(models, p, RefineOptions(single_precision=True)),
            lambda verbs=verbs, models=models, p=given: verbs.spread_consensus(models, p, 0.1, regions),
            lambda verbs=verbs, models=models, p=given: verbs.top(models, p, 0.1, 1),
            lambda verbs=verbs, models=models, p=given: verbs.promising(models, p, 0.1, 1, RefineOptions()),
            lambda verbs=verbs, models=models, p=given: verbs.most_distinct(models, p, 0.1, regions, 2, 0.9),
            lambda verbs=verbs, models=models, p=given: verbs.right_matches(models[0], p, 0.1, 1),
            lambda verbs=verbs, models=models, p=given: verbs.information(models[0], p, np.ones(700)),
        ]
        if verbs is not HOMOGRAPHIES:
            calls.append(lambda verbs=verbs, models=models, p=given: verbs.jacobian(models[0], p))
    for call in calls:
        assert len(on_a_small_stack(call)) == 1


def test_estimates_run_on_small_stacks():
    pair = make_pair(1000, outlier_ratio=0.5, seed=0)
    points = pair.points1, pair.points2
    query = make_query(1000, outlier_ratio=0.5, seed=0)
    for call in (
        lambda: caransac.estimate_relative_pose(*points, pair.camera1, pair.camera2),
        lambda: caransac.estimate_fundamental(*points),
        lambda: caransac.estimate_homography(*points),
        lambda: caransac.estimate(*points),
        lambda: caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera),
        lambda: caransac.estimate_absolute_pose(query.points2d, query.points3d, image_size=(1024, 768)),
    ):
        assert len(on_a_small_stack(call)) == 1

"""Every kernel releases the interpreter lock while it works."""

import threading
import time

import numpy as np
import pytest

from caransac import _native, kernels
from caransac.geometry import essential_from_pose, split_pose
from caransac.kernels import FUNDAMENTALS, POSES, RefineOptions
from caransac.learned.state_network import load_network
from caransac.synthetic import make_pair

pytestmark = pytest.mark.slow

# Number of ticks of another thread that proves that the lock is released; otherwise it gets one or two per call.
TICKS = 5
QUICK = {"instruction_set", "retract", "sources_digest"}  # kernels that are too fast for this test


@pytest.fixture(scope="module")
def calls():
    """A long call of each kernel, by its name in the compiled module."""
    pair = make_pair(3000, seed=1)
    points1, points2 = (pair.camera1.pixels_to_rays(points) for points in (pair.points1, pair.points2))
    points, pool = kernels.pack(points1, points2), np.arange(3000, dtype=np.int32)
    many1, many2 = (np.tile(points, (400, 1)) for points in (points1, points2))
    many = kernels.pack(many1, many2)
    five, seven = (kernels.sample_uniform(pool, size, 30_000, seed=0) for size in (5, 7))
    poses, _ = kernels.five_point_poses(points, five)
    in_space = np.column_stack([points2, np.linspace(3, 5, 3000)])
    space, focal_pose = kernels.pack_space(points1, in_space), np.concatenate([poses[0], np.zeros((3, 2))], axis=1)
    layer = (np.ones((100, 100), np.float32), np.ones(100, np.float32), kernels.Activation.TANH, False)
    states = load_network("default").kernels
    photograph, places = np.tile(np.arange(256, dtype=np.uint8), (256, 1)), np.full((30_000, 2), 100.0)
    long = {
        "five_point": lambda: kernels.five_point(points, five),
        "five_point_poses": lambda: kernels.five_point_poses(points, five),
        "seven_point": lambda: kernels.seven_point(points, seven),
        "four_point": lambda: kernels.four_point(points, np.tile(five[:, :4], (40, 1))),
        "real_roots": lambda: kernels.real_roots(np.random.default_rng(0).normal(size=(100_000, 11))),
        "sample_uniform": lambda: kernels.sample_uniform(pool, 5, 1_000_000, seed=0),
        "sample_prosac": lambda: kernels.sample_prosac(pool, 5, 1_000_000, seed=0),
        "mlp": lambda: kernels.mlp([np.ones((30_000, 100), np.float32)], [layer] * 3),
        "StateNetwork.first": lambda: states.first(np.ones((200_000, 36), np.float32)),
        "StateNetwork.update": lambda: states.update(np.ones((100_000, 16), "f"), np.ones((20, 100_000), "f")),
        "neighbour_features": lambda: kernels.neighbour_features(many.subset(np.arange(100_000, dtype=np.int32))),
        "side_information": lambda: kernels.side_information(
            many.subset(np.arange(100_000, dtype=np.int32)), None, kernels.ScoreKind.RATIO
        ),
        "pack": lambda: kernels.pack(many1, many2),
        "calibrate": lambda: kernels.calibrate(many1, many2, np.ones((2, 4))),
        "normalise": lambda: kernels.normalise(many1, many2),
        "Regions": lambda: kernels.Regions(many, np.ones(len(many), np.float32), 7.0),
        "most_likely": lambda: kernels.most_likely(np.tile(np.linspace(0, 1, 10_000, dtype=np.float32), 300), 100_000),
        "inner_products": lambda: kernels.inner_products(np.ones((300, 40_000), "f"), np.ones(40_000, "f")),
        "fit_evidence": lambda: kernels.fit_evidence(
            np.tile([0.1, 0.2], 50_000),
            np.ones((100_000, 5)),
            np.ones(100_000),
            np.ones(100_000),
            1.0,
            1.0,
            4.0,
            8.0,
            1e6,
            2.0,
            100_000,
            5,
        ),
        "mirrored_turns": lambda: kernels.mirrored_turns(points, 5),
        "widths": lambda: kernels.widths(many, len(many)),
        "fourier_features": lambda: kernels.fourier_features(np.linspace(0, 1, 1_000_000)),
        "three_point": lambda: kernels.three_point(space, np.tile(five[:, :3], (40, 1))),
        "pack_space": lambda: kernels.pack_space(many1, np.tile(in_space, (400, 1))),
        "change_lenses": lambda: kernels.change_lenses(many, (0.0, 0.0), (-0.1, -0.1)),
        "refine_lens_pose": lambda: kernels.refine_lens_pose(
            focal_pose, (0.0, 0.0), many, np.ones(len(many)), (0.0, 0.0), RefineOptions()
        ),
        "lens_information": lambda: kernels.lens_information(focal_pose, (0.0, 0.0), many, np.ones(len(many))),
        "positive_depths": lambda: kernels.positive_depths(poses[:3000], points),
        "local_maps": lambda: kernels.local_maps(many1, many2, 12),
        "align_patches": lambda: kernels.align_patches(
            photograph,
            photograph,
            places,
            places,
            np.tile(np.eye(2), (len(places), 1, 1)),
            0,
            7,
            8,
            1.0,
            3.0,
            0.03,
            0.3,
        ),
    }
    ones = np.ones(len(many))
    for kind, models in ((POSES, poses), (FUNDAMENTALS, essential_from_pose(*split_pose(poses)))):
        name, regions = kind.__name__, kernels.Regions(points, np.ones(len(points), np.float32), 7.0)
        long |= {
            f"{name}.residuals_sq": lambda kind=kind, models=models: kind.residuals_sq(models[:3000], points),
            f"{name}.msac_scores": lambda kind=kind, models=models: kind.msac_scores(models[:3000], points, 1e-3),
            f"{name}.spread_consensus": lambda kind=kind, models=models, regions=regions: kind.spread_consensus(
                models[:3000], points, 1e-3, regions
            ),
            f"{name}.top": lambda kind=kind, models=models: kind.top(models, points, 1e-3, 4),
            f"{name}.promising": lambda kind=kind, models=models: kind.promising(
                models, points, 1e-3, 200, RefineOptions()
            ),
            f"{name}.most_distinct": lambda kind=kind, models=models, regions=regions: kind.most_distinct(
                models[:3000], points, 1e-3, regions, 10, 0.9
            ),
            f"{name}.right_matches": lambda kind=kind, models=models: kind.right_matches(models[0], many, 10.0, 1),
            f"{name}.refine": lambda kind=kind, models=models: kind.refine(models[:300], points, RefineOptions()),
            f"{name}.information": lambda kind=kind, models=models: kind.information(models[0], many, ones),
            f"{name}.jacobian": lambda kind=kind, models=models: kind.jacobian(models[0], many),
            f"{name}.outcome_deviations": lambda kind=kind, models=models: kind.outcome_deviations(
                models[0], many, ones, np.ones((kind.degrees_of_freedom, 1)), 1.0, np.eye(kind.degrees_of_freedom), 10
            ),
            f"{name}.response": lambda kind=kind, models=models: kind.response(
                models[0], many, many, ones, 1.0, np.eye(kind.degrees_of_freedom)
            ),
        }
    long["Poses.mean_of_agreeing"] = lambda: POSES.mean_of_agreeing(poses[:3000], points, 1e-3, regions, 3.0, 1.0)
    return long


def ticks_during(call):
    """Count how often this thread runs while another thread is in the call."""
    begun, enough, finished = threading.Event(), threading.Event(), threading.Event()

    def work():
        begun.set()
        for _ in range(3):  # repeated, so that it takes long enough on a busy machine
            call()
            if enough.is_set():
                break
        finished.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    ticks = 0
    while not finished.is_set():  # if the call kept the lock, this loop would run only at the end
        time.sleep(1e-3)
        ticks += 1
        if ticks == TICKS:
            enough.set()
    thread.join()
    return ticks


def test_other_threads_run_during_a_call(calls):
    for name, call in calls.items():
        assert ticks_during(call) >= TICKS, name


def test_no_kernel_is_forgotten(calls):
    tested = {name.rpartition(".")[2] for name in calls} | QUICK
    functions = {name for name in dir(_native) if callable(getattr(_native, name)) and name[0].islower()}
    verbs = {
        name
        for kind in (_native.Poses, _native.Fundamentals, _native.StateNetwork)
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name))
    }
    assert functions | verbs <= tested

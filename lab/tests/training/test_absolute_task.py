"""Training for absolute poses: examples, augmentation, gradients, and a complete run."""

from dataclasses import replace

import numpy as np
import pytest
from layouts import write_scene

from caransac import Options
from caransac.learned.state_network import load_network
from caransac.learned.weights_file import read_weights
from caransac.robust.assess.evidence import EVIDENCE
from caransac.robust.pipeline import adapt
from caransac.synthetic import make_pair
from caransac_lab.datasets import Pair, read_queries
from caransac_lab.training.absolute_task import make_query_example, with_repetition
from caransac_lab.training.hard_queries import harden, in_space
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.trainer import train
from caransac_lab.training.worker import Worker


@pytest.fixture
def root(tmp_path, rng):
    write_scene(tmp_path / "mine" / "place", rng, num_images=5)
    return tmp_path / "mine"


@pytest.fixture
def query(root):
    return read_queries(root)[0]


@pytest.mark.parametrize("name", ["absolute", "absolute_focal"])
def test_an_example_has_the_problem_that_the_loop_solves(query, name, rng):
    example = make_query_example(query, name, rng)
    assert example.problem.traits.confidence == name and example.has_pose
    found = adapt(example.problem, load_network("default"), example.side, example.info, Options())
    assert example.pose_error_deg(found.model) < 5
    assert np.mean((found.msac_scores > 0) == (example.labels > 0)) > 0.8


@pytest.mark.parametrize("kind", ["plane", "far", "few", "focal", "copy", "patch"])
def test_hard_queries_keep_their_truth(query, kind, rng):
    hard = harden(query, kind, rng)
    right = hard.right_matches()
    if kind == "few":
        assert 6 <= len(right) <= 30 and right.mean() > 0.4
    elif kind == "focal":
        assert hard.camera.fx != query.camera.fx and right.mean() < query.right_matches().mean()
    elif kind == "copy":
        shares = [harden(query, kind, rng).right_matches().mean() / right.mean() for _ in range(20)]
        assert min(shares) < 0.9 * max(shares)
    else:
        assert right.sum() > 0.7 * query.right_matches().sum()
    if kind == "patch":
        assert np.ptp(hard.points2d[right > 0], axis=0).max() < 151
    if kind == "plane":
        flat = hard.points3d[right > 0]
        thin, *_, wide = np.sort(np.linalg.svd(flat - flat.mean(axis=0), compute_uv=False))
        assert thin < 0.05 * wide


def test_repeated_structures_and_unrelated_images(query, rng):
    repeated = with_repetition(query, rng)
    assert repeated.right_matches().sum() < 0.95 * query.right_matches().sum()
    unrelated = in_space(Pair.from_synthetic(make_pair(50, outlier_ratio=1.0)), rng)
    assert unrelated.R is None and unrelated.points3d[:, 2].min() > 0 and not unrelated.right_matches().any()


@pytest.mark.slow
def test_gradients_and_evidence(root):
    recipe = Recipe(task="absolute", data=(str(root),), width=16, val_pairs=2)
    worker = Worker(recipe)
    weights = {name: array for name, array in read_weights("default", "start").items() if "confidence" not in name}
    gradients, figures = worker.gradient(weights, 0, range(4))
    assert figures and any(np.abs(gradient).max() > 0 for gradient in gradients)
    found = next(found for index in range(20) if (found := worker.evidence(weights, "absolute", index)))
    evidence, right, rotation = found
    assert evidence.shape == (len(EVIDENCE),) and isinstance(right, bool)
    assert 10 < np.isfinite(evidence).sum() < len(EVIDENCE)  # some evidence exists only for two images
    assert rotation is None


@pytest.mark.slow
def test_a_complete_run(root, tmp_path):
    recipe = Recipe(task="absolute", data=(str(root),), width=8, batch=2, epoch=2, val_pairs=2)
    path = train(recipe, tmp_path / "run", steps=2, evidence_runs=25)
    network = load_network(path)
    assert {"confidence.absolute.mean", "confidence.absolute_focal.mean"} <= network.weights.keys()
    with pytest.raises(ValueError, match="absolute poses are trained on real scenes"):
        train(replace(recipe, data=()), tmp_path / "other", steps=1)

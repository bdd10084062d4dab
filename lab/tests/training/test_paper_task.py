"""Training as in the paper: unchanged pairs, a threshold of one pixel, its network, and any side information."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import caransac
from caransac.geometry import pose_error_deg
from caransac.learned.network_layout import PAPER_LAYOUT
from caransac.learned.state_network import StateNetwork, load_network
from caransac.options import Options
from caransac.synthetic import make_pair
from caransac_lab.cli import main
from caransac_lab.datasets import Pair
from caransac_lab.training.filter_task import FilterModule
from caransac_lab.training.paper_task import PaperTask
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.state_module import StateModule
from caransac_lab.training.worker import Worker

SMALL = {"width": 8, "val_pairs": 1}


@pytest.fixture
def pair():
    return Pair.from_synthetic(make_pair(200, outlier_ratio=0.4, seed=2))


def test_the_recipe_is_the_papers():
    recipe = Recipe.paper()
    assert (recipe.task, recipe.width, recipe.batch, recipe.learning_rate) == ("paper", 128, 16, 1e-3)
    assert (recipe.synthetic_share, recipe.fundamental_share, recipe.prior_loss) == (0, 0, False)
    task = PaperTask(recipe)
    assert task.options(3, 1.0) == Options.paper(seed=3)
    assert not PaperTask(Recipe.paper(state_update=False)).options(0, 1.0).state_update
    for name, value in {"prior_loss": True, "lifted": 1, "max_matches": 9}.items():
        with pytest.raises(ValueError, match="training of the paper"):
            Recipe(**{name: value})
    for name in ("lifted", "max_matches"):
        with pytest.raises(ValueError, match=name):
            Recipe.paper(**{name: -1})
    with pytest.raises(ValueError, match="filter_features"):
        Recipe(task="filter", filter_features=129)


def test_pairs_are_only_thinned_out(pair, rng):
    assert PaperTask(Recipe.paper()).augment(pair, rng) is pair
    few = PaperTask(Recipe.paper(max_matches=50)).augment(pair, rng)
    rows = np.concatenate([pair.points1, pair.points2, pair.scores[:, None]], axis=1).tolist()
    kept = np.concatenate([few.points1, few.points2, few.scores[:, None]], axis=1).tolist()
    assert len(kept) == 50 and all(row in rows for row in kept)


@pytest.mark.parametrize("lifted", [0, 1, 3])
def test_features_of_the_data_may_be_lifted(scenes, lifted):
    recipe = Recipe.paper(data=(str(scenes),), lifted=lifted, **SMALL)
    worker = Worker(recipe)
    inputs = 16 + 16 * lifted + 3 - lifted
    assert worker.sizes() == (inputs, 1)
    network = worker.task.make_network(inputs)
    assert network.layout == replace(PAPER_LAYOUT, lifted=lifted)
    gradients, figures = worker.gradient(network.to_weights(), 0, range(2))
    assert len(figures) == 2 and all(np.isfinite(each).all() for each in gradients)
    numbers, *_ = worker.evidence(network.to_weights(), "essential", 1)
    assert np.isfinite(numbers).all()
    with pytest.raises(ValueError, match="lifted: the data have 3 features"):
        Worker(replace(recipe, lifted=4)).sizes()


def test_a_filter_is_read_as_the_paper_reads_one(scenes, tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "filter.npz"
    np.savez(path, **FilterModule(8, 5).to_weights())
    (scenes / "scene" / "match_features.h5").unlink()
    worker = Worker(Recipe.paper(data=(str(scenes),), with_filter=str(path), **SMALL))
    assert worker.sizes() == (16 + 16 + 5, 1)
    example = worker.task.example(worker.val_pairs[0])
    assert example.side.shape[1] == 37
    silent = (example.side[:, 32:] == 0).all(axis=1)
    assert silent.mean() == pytest.approx(0.75, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("told_by", ["feature", "residual"])
def test_the_information_of_features_reaches_the_estimate(make_scenes, tmp_path, rng, told_by):
    """Only the features distinguish right matches from wrong ones. A short training run learns this."""
    count = 300

    def features_of(pair):
        flags = np.where(pair.inliers, 1.0, -1.0) if told_by == "feature" else rng.normal(size=count)
        residuals = np.where(pair.inliers, 0.1, 1.4) if told_by == "residual" else rng.uniform(0, 1.5, count)
        return np.stack([rng.normal(size=count), flags, residuals], axis=1)

    pairs, scores = [make_pair(count, outlier_ratio=0.9, seed=seed) for seed in range(10)], np.full(count, 0.9)
    folder = make_scenes(pairs[:6], [scores] * 6, [features_of(pair) for pair in pairs[:6]])
    worker = Worker(Recipe.paper(data=(str(folder),), lifted=1, prior_loss=True, width=16, val_pairs=1))
    torch.manual_seed(0)
    network = worker.task.make_network(worker.sizes()[0])
    adam = torch.optim.Adam(network.parameters(), lr=0.02)
    for step in range(40):
        gradients, _ = worker.gradient(network.to_weights(), step, range(2))
        for parameter, gradient in zip(network.parameters(), gradients, strict=True):
            parameter.grad = torch.from_numpy(gradient)
        adam.step()
    path = tmp_path / "weights.npz"
    np.savez(path, **network.to_weights())
    options = Options.paper(weights=str(path), rounds=1, samples_per_round=32)
    for pair in pairs[6:]:
        told, errors = features_of(pair), []
        for features in (told, rng.permutation(told)):
            points = pair.points1, pair.points2, pair.camera1, pair.camera2
            given = {"scores": scores, "score_kind": "ratio", "features": features, "options": options}
            found = caransac.estimate_relative_pose(*points, **given)
            errors.append(pose_error_deg(found.R, found.t, pair.R, pair.t) if found.success else 180.0)
        assert errors[0] < 5 < 20 < errors[1]


def test_the_prior_counts_only_on_request(scenes):
    (scenes / "scene" / "match_features.h5").unlink()
    torch.manual_seed(0)
    weights = StateModule(16, 8, PAPER_LAYOUT).to_weights()
    figures = [
        Worker(Recipe.paper(data=(str(scenes),), prior_loss=counts, **SMALL)).validate(weights, 0)
        for counts in (False, True)
    ]
    assert figures[1]["entropy"] - figures[0]["entropy"] == pytest.approx(0.9**4 * figures[0]["prior"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("extra", [["--no-update"], ["--fundamental-share=1", "--prior-loss"]])
def test_the_command_trains_weights_that_the_preset_runs(scenes, tmp_path, extra, capsys):
    (scenes / "scene" / "match_features.h5").unlink()
    out = tmp_path / "run"
    arguments = [f"--data={scenes}", f"--out={out}", "--steps=1", "--batch=2", "--val-pairs=1", "--evidence-runs=30"]
    assert main(["train", "--paper", "--workers=1", "--max-matches=100", *arguments, *extra]) == 0
    assert "caransac.Options.paper(weights=" in capsys.readouterr().out
    network = load_network(str(out / "weights.npz"))
    assert isinstance(network, StateNetwork) and network.layout == PAPER_LAYOUT
    assert network.num_features == 16

"""The loss of a run: training computes the same rounds as the estimator, and gradients reach the right parameters."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from caransac.kernels import RefineOptions
from caransac.learned.network_layout import PAPER_LAYOUT
from caransac.learned.state_network import load_network
from caransac.options import Options
from caransac.robust.loop.refinement import match_weights
from caransac.robust.pipeline import adapt
from caransac.tuning import DEFAULT_TUNING, PAPER_TUNING
from caransac_lab.training.data import make_example, synthetic_pair
from caransac_lab.training.replay import RecordedNetwork, pose_error_slope, pose_loss, refinement_step, replay
from caransac_lab.training.state_module import StateModule


def run(network, example, seed=0):
    options = Options(max_error_px=example.max_error_px, early_stop=False, seed=seed)
    return adapt(example.problem, network.to_numpy(), example.side, example.info, options)


def shipped():
    """The shipped weights in torch."""
    weights = {name: w for name, w in load_network("default").weights.items() if not name.startswith("confidence")}
    module = StateModule(len(weights["init.0.weight"]), weights["init.0.weight"].shape[1])
    module.load_weights(weights)
    return module


@pytest.mark.parametrize("problem_name", ["essential", "fundamental", "homography", "focal"])
@pytest.mark.parametrize("max_error_px", ["auto", 1.5])
def test_torch_and_the_compiled_network_run_the_same_rounds(rng, problem_name, max_error_px):
    """Both have the same samples, models, noise and probabilities in every round."""
    module = shipped()
    while len((pair := synthetic_pair(rng)).points1) > 1500 or pair.right_matches().mean() < 0.3:
        pass
    example = make_example(pair, problem_name, rng, max_error_px)
    recorded = RecordedNetwork(module)
    options = Options(max_error_px=max_error_px, early_stop=False, seed=5)
    replayed = adapt(example.problem, recorded, example.side, example.info, options)
    compiled = adapt(example.problem, module.to_numpy(), example.side, example.info, options)
    assert recorded.num_features == module.to_numpy().num_features
    assert recorded.alpha == module.to_numpy().alpha
    assert len(replayed.rounds) == len(compiled.rounds) == 1 + options.rounds
    assert len(recorded.log_odds) == len(replayed.rounds)
    for ours, theirs, log_odds in zip(compiled.rounds, replayed.rounds, recorded.log_odds, strict=True):
        assert np.array_equal(ours.samples, theirs.samples)
        assert ours.models.shape == theirs.models.shape
        assert np.allclose(ours.models, theirs.models, atol=1e-3)
        assert np.allclose(ours.probabilities, theirs.probabilities, atol=1e-3)
        assert np.allclose(ours.state, theirs.state, atol=1e-2)
        assert theirs.noise == pytest.approx(ours.noise, rel=1e-3)
        assert theirs.max_error == pytest.approx(ours.max_error, rel=1e-3)
        assert np.array_equal(torch.sigmoid(log_odds).detach().numpy(), theirs.probabilities)
    assert np.allclose(compiled.model, replayed.model, atol=1e-3)
    assert np.mean((compiled.msac_scores > 0) == (replayed.msac_scores > 0)) > 0.99


def test_recorded_outputs_have_gradients_through_all_rounds(network, example):
    recorded = RecordedNetwork(network)
    adapt(example.problem, recorded, example.side, example.info, Options(early_stop=False))
    (gradient,) = torch.autograd.grad(recorded.log_odds[-1].sum(), network.layers["init"][0].weight)
    assert gradient.abs().max() > 0


def test_the_replayed_step_equals_a_step_of_the_refinement(network, example):
    """torch takes the same Levenberg-Marquardt step as the kernel, starting near the optimum."""
    found = run(network, example)
    record, problem = found.rounds[-1], example.problem
    model = problem.model_kernels.retract(found.model, 1e-4 * np.array([1, -2, 1, 3, -1]))
    weights = match_weights(network.to_numpy(), record.probabilities, DEFAULT_TUNING.min_weight)
    scale = record.noise
    (stepped,) = problem.refine(model[None], RefineOptions(loss_scale=scale, max_steps=1), weights)
    step = refinement_step(network, example, model, record).detach().numpy()
    assert np.abs(problem.model_kernels.retract(model, step) - stepped).max() < 0.05 * np.abs(stepped - model).max()


def test_the_pose_loss_moves_only_the_exponent(example):
    network = shipped()
    record = run(network, example).rounds[-1]
    assert 0 < example.pose_error_deg(record.best) < 30  # the loss is clamped at 30 degrees and has no gradient beyond
    pose_loss(network, example, record).backward()
    assert network.alpha.grad is not None and network.alpha.grad != 0
    assert all(p.grad is None for name, p in network.named_parameters() if name != "alpha")


def test_the_slope_of_the_pose_error(network, example):
    found = run(network, example)
    slope = pose_error_slope(example, found.model, 5)
    delta = 1e-4 * slope / np.linalg.norm(slope)
    rise = example.pose_error_deg(example.problem.model_kernels.retract(found.model, delta)) - example.pose_error_deg(
        found.model
    )
    assert rise == pytest.approx(slope @ delta, rel=0.05)


def test_replay_has_the_loss_of_the_loop_and_gradients_for_every_network(example):
    network = shipped()  # finds the pose; beyond 30 degrees, the exponent has no gradient
    losses = replay(network, example, Options(early_stop=False, seed=3))
    losses.total.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())
    found = run(network, example, seed=3)
    p, y = found.probabilities.astype(float), example.labels
    assert losses.posterior == pytest.approx(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)), abs=1e-4)
    assert losses.pose_error_deg == pytest.approx(example.pose_error_deg(found.model))


def test_self_supervision_needs_no_truth(network, example):
    blind = replace(example, R=None, t=None, labels=np.zeros_like(example.labels))
    options = Options(early_stop=False)
    assert np.isfinite(replay(network, blind, options, self_supervised=True).total.item())


@pytest.fixture
def paper(rng):
    """A small version of the paper's network, and an example that it solves."""
    torch.manual_seed(2)
    module = StateModule(16, 8, PAPER_LAYOUT)
    while True:
        example = make_example(synthetic_pair(rng), max_error_px=1.0, layout=PAPER_LAYOUT)
        found = adapt(example.problem, module.to_numpy(), example.side, example.info, Options.paper(seed=5))
        if all(example.pose_error_deg(record.best) < 20 for record in found.rounds[1:]):
            return module, example


@pytest.mark.parametrize("state_update", [True, False])
def test_the_loss_of_the_paper_is_its_formula(paper, state_update):
    module, example = paper
    options = Options.paper(state_update=state_update, seed=5)
    losses = replay(module, example, options, with_prior=False)
    found = adapt(example.problem, module.to_numpy(), example.side, example.info, options)
    assert len(found.rounds) == 5
    expected = 0.0
    for q, record in enumerate(found.rounds[1:], 1):
        p, y = record.probabilities.astype(float), example.labels
        inliers = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
        pose = min(example.pose_error_deg(record.best), 30)
        expected += 0.9 ** (4 - q) * (inliers + pose / 60)
    assert losses.total.item() == pytest.approx(expected, rel=1e-3)


def test_the_papers_loss_reaches_every_parameter_and_its_pose_loss_only_alpha(paper):
    module, example = paper
    replay(module, example, Options.paper(seed=5), with_prior=False).total.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())
    module.zero_grad()
    found = adapt(example.problem, module.to_numpy(), example.side, example.info, Options.paper(seed=5))
    for record in found.rounds[1:]:
        loss = pose_loss(module, example, record, PAPER_TUNING)
        assert loss.item() == pytest.approx(example.pose_error_deg(record.best)) and loss.item() < 30
        loss.backward()
    assert [name for name, p in module.named_parameters() if p.grad is not None and p.grad.any()] == ["alpha"]

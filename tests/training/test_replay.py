"""The loss of a run of the loop, and where its gradients go."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from caransac.robust.methods import adapt

from caransac.kernels import RefineOptions
from caransac.options import Options
from caransac.robust.ca_ransac import first_belief
from caransac.robust.refinement import LOSS_SCALE_IN_NOISE, belief_weights
from caransac.training.replay import pose_error_slope, pose_loss, refinement_step, replay


def run(network, example, seed=0):
    trained = network.to_numpy()
    belief = first_belief(example.problem, trained, example.side)
    return adapt(example.problem, trained, belief, Options(early_stop=False, seed=seed))


def test_the_replayed_step_is_that_of_the_refinement(network, example):
    """One Levenberg-Marquardt step of the kernel, from a little beside the optimum, is the step torch takes."""
    found = run(network, example)
    record, prior, problem = found.rounds[-1], found.rounds[0].probabilities, example.problem
    model = problem.retract(found.model, 1e-4 * np.array([1, -2, 1, 3, -1]))
    weights = belief_weights(network.to_numpy(), record.probabilities, prior)
    scale = LOSS_SCALE_IN_NOISE * record.noise * problem.max_error
    (stepped,) = problem.refine(model[None], RefineOptions(loss_scale=scale, max_steps=1), weights)
    step = refinement_step(network, example, model, prior, record).detach().numpy()
    assert np.abs(problem.retract(model, step) - stepped).max() < 0.05 * np.abs(stepped - model).max()


def test_the_pose_loss_moves_the_exponents_alone(network, example):
    found = run(network, example)
    network.zero_grad()
    record = found.rounds[-1]
    pose_loss(network, example, found.rounds[0], record).backward()
    assert network.alpha.grad is not None
    assert network.alpha.grad != 0 or example.pose_error_deg(record.best) > 30
    assert all(p.grad is None for name, p in network.named_parameters() if name not in ("alpha", "beta"))


def test_the_slope_of_the_pose_error(network, example):
    found = run(network, example)
    slope = pose_error_slope(example, found.model, 5)
    delta = 1e-4 * slope / np.linalg.norm(slope)
    rise = example.pose_error_deg(example.problem.retract(found.model, delta)) - example.pose_error_deg(found.model)
    assert rise == pytest.approx(slope @ delta, rel=0.05)


def test_replay_gives_gradients_to_every_network_and_its_loss_is_that_of_the_loop(network, example):
    network.zero_grad()
    losses = replay(network, example, seed=3)
    losses.total.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())
    found = run(network, example, seed=3)
    p, y = found.probabilities.astype(float), example.labels
    assert losses.posterior == pytest.approx(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)), abs=1e-4)
    assert losses.pose_error_deg == pytest.approx(example.pose_error_deg(found.model))


def test_self_supervision_needs_no_truth(network, example):
    blind = replace(example, R=None, t=None, labels=np.zeros_like(example.labels))
    assert np.isfinite(replay(network, blind, seed=0, self_supervised=True).total.item())

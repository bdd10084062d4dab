"""The loss of one run of the loop: torch replays the networks on what the loop recorded; nothing else has gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from caransac.geometry import Array, Floats
from caransac.options import Options
from caransac.results import Round
from caransac.robust.ca_ransac import first_belief
from caransac.robust.estimate import Estimate
from caransac.robust.methods import adapt
from caransac.robust.refinement import LOSS_SCALE_IN_NOISE, NEGLIGIBLE_WEIGHT
from caransac.training.data import MAX_ERROR_PX, Example
from caransac.training.state_module import StateModule

EPSILON = 0.1  # how much less a round counts than the next
POSE_WEIGHT = 1 / 60  # a loss of one for every so many degrees
POSE_CLAMP_DEG = 30.0
STEP = 1e-5  # of the finite differences of the pose error
DAMPING = 1e-6  # of the replayed step, relative to the largest curvature
LEAST_CURVATURE = 0.2  # of the Cauchy loss, in its slope


@dataclass(frozen=True)
class Losses:
    """What one example contributes: the loss, and figures to log.

    Attributes:
        total: the loss, with gradient.
        entropy: its part that the probabilities decide, the discounted sum of the cross entropies.
        prior: cross entropy of the probabilities before any model.
        posterior: cross entropy of the last ones.
        pose_error_deg: of the last best model, NaN without truth.
    """

    total: Tensor
    entropy: float
    prior: float
    posterior: float
    pose_error_deg: float


def replay(network: StateModule, example: Example, seed: int, self_supervised: bool = False) -> Losses | None:
    """Run the loop with the network's present weights and replay it; None when the loop found no model.

    Args:
        network: the network being trained.
        example: the pair.
        seed: seed of the run.
        self_supervised: label the points by the run's own final model instead of the truth.
    """
    options = Options(max_error_px=MAX_ERROR_PX, early_stop=False, seed=seed)
    trained = network.to_numpy()
    found = adapt(example.problem, trained, first_belief(example.problem, trained, example.side), options)
    if found.model is None:
        return None
    labels = example.labels
    if self_supervised:
        assert found.msac_scores is not None
        labels = (found.msac_scores > 0).astype(np.float32)
    entropies = cross_entropies(network, example.side, found, labels)
    total = discounted(entropies)
    entropy, pose_error = total.item(), np.nan
    if example.R is not None:
        if not self_supervised:
            start, *rounds = found.rounds
            total = total + POSE_WEIGHT * discounted([pose_loss(network, example, start, record) for record in rounds])
        pose_error = example.pose_error_deg(found.model)
    return Losses(total, entropy, entropies[0].item(), entropies[-1].item(), pose_error)


def discounted(losses: Sequence[Tensor]) -> Tensor:
    """Sum of the losses of the rounds, the last one counting in full."""
    return torch.stack([(1 - EPSILON) ** (len(losses) - 1 - q) * loss for q, loss in enumerate(losses)]).sum()


def cross_entropies(network: StateModule, side: Floats, found: Estimate, labels: Floats) -> list[Tensor]:
    """Mean cross entropy of the probabilities before any model and after every round."""
    targets = torch.from_numpy(labels)
    state = network.init_state(torch.from_numpy(side))
    entropies = [binary_cross_entropy_with_logits(network.log_odds(state), targets)]
    for _, record in pairwise(found.rounds):
        state = network.next_state(state, torch.from_numpy(record.msac_scores))
        entropies.append(binary_cross_entropy_with_logits(network.log_odds(state), targets))
    return entropies


def pose_loss(network: StateModule, example: Example, start: Round, record: Round) -> Tensor:
    """Pose error in degrees of a round's best model, clamped; its gradient reaches alpha and beta alone.

    The gradient flows through one more Levenberg-Marquardt step of the refinement, with the probabilities held fixed.
    That step moves the model by next to nothing, but how it would move it for other exponents is what counts.
    """
    assert record.best is not None
    error = example.pose_error_deg(record.best)
    if error >= POSE_CLAMP_DEG:
        return torch.tensor(POSE_CLAMP_DEG)
    step = refinement_step(network, example, record.best, start.probabilities, record)
    slope = pose_error_slope(example, record.best, len(step))
    return error + ((step - step.detach()) @ torch.from_numpy(slope)).float()


def refinement_step(network: StateModule, example: Example, model: Array, prior: Floats, record: Round) -> Tensor:
    """One damped step of the weighted refinement from a model, differentiable in alpha and beta."""
    problem = example.problem
    residuals, jacobian = problem.jacobian(model)
    loss_scale = LOSS_SCALE_IN_NOISE * record.noise * problem.max_error
    squares = (residuals / loss_scale) ** 2
    slope = 1 / (1 + squares)  # of the Cauchy loss, and its curvature as the kernel has it (hot/loss.h)
    bend = np.maximum((1 - squares) * slope**2, LEAST_CURVATURE * slope)
    probability, prior_probability = (
        torch.from_numpy(np.maximum(p, 1e-12).astype(float)) for p in (record.probabilities, prior)
    )
    weights = probability ** network.alpha.double() * prior_probability ** network.beta.double()
    weights = torch.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0)
    J, r = torch.from_numpy(jacobian), torch.from_numpy(slope * residuals)
    curvature = J.T @ ((weights * torch.from_numpy(bend))[:, None] * J)
    damping = DAMPING * curvature.diagonal().max().clamp(min=1e-12) * torch.eye(len(curvature))
    step: Tensor = -torch.linalg.solve(curvature + damping, J.T @ (weights * r))
    return step


def pose_error_slope(example: Example, model: Array, degrees_of_freedom: int) -> Array:
    """Gradient of the pose error in degrees along the degrees of freedom of a model, by central differences."""
    steps = STEP * np.eye(degrees_of_freedom)
    ahead, behind = (
        np.array([example.pose_error_deg(example.problem.retract(model, sign * step)) for step in steps])
        for sign in (1, -1)
    )
    return np.asarray((ahead - behind) / (2 * STEP))

"""Compute the loss of one run of the estimator, with torch instead of the compiled network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from caransac.geometry import Array, Floats
from caransac.options import Options
from caransac.results import Round
from caransac.robust.pipeline import adapt
from caransac.tuning import DEFAULT_TUNING, Tuning
from caransac_lab.training.data import Example
from caransac_lab.training.state_module import StateModule

EPSILON = 0.1  # discount: how much less a round counts than the next
POSE_WEIGHT = 1 / 60  # loss per degree of pose error
POSE_CLAMP_DEG = 30.0
STEP = 1e-5  # step of the finite differences of the pose error
DAMPING = 1e-6  # damping of the replayed step, relative to the largest curvature
LEAST_CURVATURE = 0.2  # minimum curvature of the Cauchy loss, divided by its slope


@dataclass(frozen=True)
class Losses:
    """Loss and logged figures of one example.

    Attributes:
        total: total loss, with gradient.
        entropy: part of the loss that depends on the probabilities: the discounted sum of cross entropies.
        prior: cross entropy of the probabilities before any model.
        posterior: cross entropy of the final probabilities.
        pose_error_deg: pose error of the final best model, NaN without truth.
    """

    total: Tensor
    entropy: float
    prior: float
    posterior: float
    pose_error_deg: float


@dataclass(eq=False)
class RecordedNetwork:
    """A network with the interface `MatchStates` that records its outputs with gradients.

    Attributes:
        module: network being trained.
        log_odds: (n,) inlier log-odds before any model and after every update.
    """

    module: StateModule
    log_odds: list[Tensor] = field(default_factory=list)
    _state: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def num_features(self) -> int:
        """Number of inputs per match."""
        return len(self.module.layers["init"][0].weight)

    @property
    def alpha(self) -> float:
        """Exponent of the refinement's weights."""
        return self.module.alpha.item()

    def first(self, side: Floats) -> tuple[Floats, Floats]:
        """Return the initial states and probabilities, and record the log-odds."""
        return self._answer(self.module.init_state(torch.from_numpy(side)))

    def update(self, state: Floats, msac_scores: Floats) -> tuple[Floats, Floats]:
        """Return updated states and probabilities. The state must be the previous output."""
        assert len(state) == len(self._state)
        return self._answer(self.module.next_state(self._state, torch.from_numpy(msac_scores)))

    def _answer(self, state: Tensor) -> tuple[Floats, Floats]:
        self._state = state
        self.log_odds.append(self.module.log_odds(state))
        return state.detach().numpy(), torch.sigmoid(self.log_odds[-1]).detach().numpy()


def replay(
    network: StateModule, example: Example, options: Options, *, self_supervised: bool = False, with_prior: bool = True
) -> Losses | None:
    """Compute the loss of a run of the estimator with the network. Return None if the run found no model.

    Args:
        network: network being trained.
        example: the pair.
        options: options of the run.
        self_supervised: whether the run's own final model labels the points instead of the truth.
        with_prior: whether the probabilities before any model count as one more round.
    """
    recorded = RecordedNetwork(network)
    found = adapt(example.problem, recorded, example.side, example.info, options)
    if found.model is None:
        return None
    labels = example.labels
    if self_supervised:
        assert found.msac_scores is not None
        labels = (found.msac_scores > 0).astype(np.float32)
    targets = torch.from_numpy(labels)
    entropies = [binary_cross_entropy_with_logits(log_odds, targets) for log_odds in recorded.log_odds]
    if not options.state_update:  # every round has the prior probabilities
        entropies *= len(found.rounds)
    total = discounted(entropies if with_prior else entropies[1:])
    entropy, pose_error = total.item(), np.nan
    if example.has_pose:
        if not self_supervised:
            poses = [pose_loss(network, example, record, options.tuning) for record in found.rounds[1:]]
            total = total + POSE_WEIGHT * discounted(poses)
        pose_error = example.pose_error_deg(found.model)
    return Losses(total, entropy, entropies[0].item(), entropies[-1].item(), pose_error)


def discounted(losses: Sequence[Tensor]) -> Tensor:
    """Sum the discounted losses of the rounds; the last one has full weight."""
    return torch.stack([(1 - EPSILON) ** (len(losses) - 1 - q) * loss for q, loss in enumerate(losses)]).sum()


def pose_loss(network: StateModule, example: Example, record: Round, tuning: Tuning = DEFAULT_TUNING) -> Tensor:
    """Return the clamped pose error in degrees of a round's best model. Its gradient reaches only alpha.

    The gradient flows through one more Levenberg-Marquardt step of the refinement, with fixed probabilities. That step
    hardly moves the model, but its derivative with respect to the exponent is what training needs.
    """
    assert record.best is not None
    error = example.pose_error_deg(record.best)
    if error >= POSE_CLAMP_DEG:
        return torch.tensor(POSE_CLAMP_DEG)
    step = refinement_step(network, example, record.best, record, tuning)
    slope = pose_error_slope(example, record.best, len(step))
    return error + ((step - step.detach()) @ torch.from_numpy(slope)).float()


def refinement_step(
    network: StateModule,
    example: Example,
    model: Array,
    record: Round,
    tuning: Tuning = DEFAULT_TUNING,
) -> Tensor:
    """Take one damped step of the weighted refinement from a model, differentiable in alpha."""
    problem = example.problem
    residuals, jacobian = problem.model_kernels.jacobian(model, problem.correspondences)
    residuals, jacobian = residuals.reshape(len(residuals), -1), jacobian.reshape(len(jacobian), -1, jacobian.shape[-1])
    lengths = np.linalg.norm(residuals, axis=1)
    squares = (lengths / record.noise) ** 2
    slope = 1 / (1 + squares)  # slope of the Cauchy loss; the curvature below follows the kernel (hot/loss.h)
    bend = np.maximum((1 - squares) * slope**2, LEAST_CURVATURE * slope)
    weights = torch.from_numpy(np.maximum(record.probabilities, 1e-12).astype(float)) ** network.alpha.double()
    weights = torch.where(weights > tuning.min_weight, weights, 0.0)
    # The loss is curved along a residual, but not across it.
    J, r = torch.from_numpy(jacobian), torch.from_numpy(slope * lengths)
    along = torch.from_numpy(residuals / np.maximum(lengths, 1e-300)[:, None])
    A = torch.einsum("nd,ndf->nf", along, J)
    across = J - along[:, :, None] * A[:, None]
    curvature = A.T @ ((weights * torch.from_numpy(bend))[:, None] * A)
    curvature = curvature + torch.einsum("n,ndf,ndg->fg", weights * torch.from_numpy(slope), across, across)
    damping = DAMPING * curvature.diagonal().max().clamp(min=1e-12) * torch.eye(len(curvature))
    step: Tensor = -torch.linalg.solve(curvature + damping, A.T @ (weights * r))
    return step


def pose_error_slope(example: Example, model: Array, degrees_of_freedom: int) -> Array:
    """Return the gradient of the pose error in degrees by the degrees of freedom of a model (central differences)."""
    steps = STEP * np.eye(degrees_of_freedom)
    ahead, behind = (
        np.array([example.pose_error_deg(example.problem.model_kernels.retract(model, sign * step)) for step in steps])
        for sign in (1, -1)
    )
    return np.asarray((ahead - behind) / (2 * STEP))

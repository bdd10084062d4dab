"""The relative pose of cameras whose focal lengths are uncertain or unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera, mean_pixel
from caransac.geometry import (
    Array,
    essential_from_fundamental,
    essential_from_pose,
    fundamental_from_essential,
    split_pose,
    symmetric_inverse,
)
from caransac.kernels import FOCAL_POSES, RELATIVE, Correspondences, Indices, IntrinsicsPrior, five_point_poses, pack
from caransac.robust.problems.base import Traits, intrinsics_of, log_scales_of, posterior_information, with_intrinsics
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.problems.relative import CameraPrior, RelativePoseProblem, choose_pose, pack_rays
from caransac.tuning import CAMERAS, ERRORS


class FocalPose(RelativePoseProblem):
    """Points are normalised by the cameras as given; models are [R | t | a1 | a2], (3, 6).

    The intrinsics a = (log_scale, x, y) of a camera are relative to the camera as given: its focal length is
    ``exp(log_scale)`` times that, its principal point ``(x, y)`` of its focal lengths away.

    Attributes:
        cameras: as given.
        shared: whether both images come from one camera.
        guessed: whether not even the sizes of the images are known.
    """

    traits = Traits(confidence="focal", degeneracy="two views", uncertainty=True, usual_focal=1.0)
    model_kernels = FOCAL_POSES

    def __init__(
        self,
        correspondences: Correspondences,
        cameras: tuple[Camera, Camera],
        shared: bool,
        usable: NDArray[np.bool_] | None = None,
        centre_deviation: float | None = None,
    ) -> None:
        super().__init__(correspondences, mean_pixel(*cameras), usable, LensPrior.of(*cameras, shared))
        self.cameras, self.shared, self.guessed = cameras, shared, centre_deviation is not None
        deviation = CAMERAS.centre_deviation if centre_deviation is None else centre_deviation
        self.priors = CameraPrior.of(cameras[0], deviation), CameraPrior.of(cameras[1], deviation)
        if self.guessed:
            self.traits = replace(type(self).traits, confidence="guessed")

    @classmethod
    def from_pixels(
        cls,
        pixels1: Array,
        pixels2: Array,
        camera1: Camera,
        camera2: Camera,
        shared: bool,
        centre_deviation: float | None = None,
    ) -> FocalPose:
        """The problem of pixels (N, 2) of two cameras, as `Essential.from_pixels`.

        `centre_deviation` is of their principal points, in the longer side of the image.
        """
        rays, usable = pack_rays(pixels1, pixels2, camera1, camera2)
        return cls(rays, (camera1, camera2), shared, usable, centre_deviation)

    def _log_scales(self, steps: tuple[float, ...]) -> list[tuple[float, float]]:
        """Return pairs of log_scale that are so many deviations away from the given focal lengths."""
        first, second = ([step * prior.focal for step in steps] for prior in self.priors)
        return [(scale, scale) for scale in first] if self.shared else list(product(first, second))

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`; samples take turns with the focal lengths that they are solved at."""

        def solve_scaled(points1: Array, points2: Array, index: Indices) -> tuple[Array, Indices]:
            return five_point_poses(pack(points1, points2), index)

        return solve_in_turns(self.correspondences, samples, self._log_scales(CAMERAS.focal_steps), solve_scaled)

    def from_public(self, model: Array) -> Array:
        """See `Problem.from_public`: a pose with the cameras as given, or a fundamental matrix.

        Its focal lengths are those of a grid, wider than the prior, that make the matrix the most essential.
        """
        if model.shape != (3, 3):
            return with_intrinsics(model)
        pairs = np.array(self._log_scales(tuple(np.linspace(-2.5, 2.5, 21))))
        scales = np.stack([np.exp(pairs), np.exp(pairs), np.ones_like(pairs)], axis=2)  # (p, 2, 3)
        given = essential_from_fundamental(model, *(camera.K for camera in self.cameras))
        candidates = scales[:, 1, :, None] * given * scales[:, 0, None]
        values = np.linalg.svd(candidates, compute_uv=False)
        best = int(np.argmax(values[:, 1] / values[:, 0]))
        points1, points2 = self.points1 / scales[best, 0, 0], self.points2 / scales[best, 1, 0]
        found = with_intrinsics(choose_pose(candidates[best], pack(points1, points2)))
        found[0, 4:] = pairs[best]
        return found

    def intrinsics_prior(
        self, noise: float, model: Array | None = None, weights: Array | None = None
    ) -> IntrinsicsPrior:
        """See `Problem.intrinsics_prior`."""
        if model is None or weights is None:
            first, second = self.with_tails().priors
            return self._prior(ERRORS.cameras * noise**2, first.focal, second.focal)
        return self._prior(self._temper(model, weights, noise) * noise**2, *self._deviations(model))

    def _deviations(self, model: Array) -> list[float]:
        """Deviations of the focal lengths whose Gaussian prior pulls a model as the prior of unknown cameras does."""
        found = []
        for prior, log_scale in zip(self.priors, log_scales_of(model), strict=True):
            relative_sq = (log_scale / prior.focal) ** 2 if prior.unknown else 1.0
            found.append(prior.focal * float((CAMERAS.tails + relative_sq) / (CAMERAS.tails + 1)) ** 0.5)
        return found

    def prior_weight(self, noise: float, model: Array, weights: Array) -> float:
        """What the prior counts for in the cost of the weighted refinement, in units of its information."""
        return self._temper(model, weights, noise) * noise**2

    @property
    def free_parameters(self) -> dict[str, int]:
        """See `RelativePoseProblem.free_parameters`: the logarithms of the refined focal lengths."""
        if self.shared:
            return {"focal": RELATIVE.focal()}
        return {f"focal{k + 1}": RELATIVE.focal(k) for k, prior in enumerate(self.priors) if prior.focal > 0}

    def held_focal_prior(self, noise: float) -> IntrinsicsPrior:
        """As `intrinsics_prior`, with the focal lengths held where they are."""
        return self._prior(ERRORS.cameras * noise**2, 0.0, 0.0)

    def _prior(self, weight: float, focal1: float, focal2: float) -> IntrinsicsPrior:
        """The prior of deviations of the two log_scales, in units of the cost."""
        own = 0.5 * weight if self.shared else weight  # one camera has one prior, half of it in each image
        first, second = self.priors
        same_frame = self.shared and self._same_size()
        return IntrinsicsPrior(
            log_scale=(precision(own, focal1), precision(own, focal2)),
            centre=(precision(own, first.centre), precision(own, second.centre)),
            log_scale_difference=weight / CAMERAS.focal_difference**2 if self.shared else 0.0,
            centre_difference=weight / CAMERAS.centre_difference**2 if same_frame else 0.0,
        )

    def _same_size(self) -> bool:
        first, second = self.cameras
        return (first.width, first.height) == (second.width, second.height)

    def _temper(self, model: Array, weights: Array, noise: float) -> float:
        """How much the prior counts: the more, the less the matches say about the focal length."""
        points = self.model_kernels.information(model, self.correspondences, weights)
        points /= ERRORS.cameras * noise**2
        said = symmetric_inverse(posterior_information(points, self._prior_information(focal_prior=False)))
        variances = np.diag(said)
        ratios = [
            variances[RELATIVE.focal(k)] / prior.focal**2 for k, prior in enumerate(self.priors) if prior.focal > 0
        ]
        return ERRORS.cameras * float(max([1.0, *(CAMERAS.weak**2 * ratio for ratio in ratios)]))

    @property
    def prior_information(self) -> Array:
        """See `Problem.prior_information`: what is known of the cameras."""
        return self._prior_information(focal_prior=True)

    def _prior_information(self, *, focal_prior: bool) -> Array:
        """The same, with or without what is known of uncertain focal lengths."""
        diagonal = np.zeros(self.model_kernels.degrees_of_freedom)
        share = 0.5 if self.shared else 1.0
        for camera, prior in enumerate(self.priors):
            focal = precision(share, prior.focal) if focal_prior or prior.focal == 0 else 0.0
            centre = precision(share, prior.centre)
            diagonal[RELATIVE.camera(camera)] = focal, centre, centre
        together = np.diag(diagonal)
        if self.shared:
            differences = CAMERAS.focal_difference, CAMERAS.centre_difference, CAMERAS.centre_difference
            for k, deviation in enumerate(differences):
                both = [RELATIVE.focal(camera) + k for camera in range(2)]
                together[np.ix_(both, both)] += np.array([[1, -1], [-1, 1]]) / deviation**2
        return together

    def fundamentals(self, models: Array) -> Array:
        """The fundamental matrices (m, 3, 3) of pixels of models (m, 3, 6), of Frobenius norm one."""
        return np.array([self._fundamental(model) for model in models]).reshape(-1, 3, 3)

    def _fundamental(self, model: Array) -> Array:
        Ks = [with_model(camera, intrinsics_of(model, k), 0.0).K for k, camera in enumerate(self.cameras)]
        F = fundamental_from_essential(essential_from_pose(*split_pose(model[:, :4])), *Ks)
        return np.asarray(F / np.linalg.norm(F))


def solve_in_turns(
    points: Correspondences,
    samples: Indices,
    guesses: list[tuple[float, float]],
    solve: Callable[[Array, Array, Indices], tuple[Array, Indices]],
) -> Array:
    """Models (m, 3, 6) through samples (S, k) that take turns with guesses of the focal lengths.

    Args:
        points: of all samples.
        samples: their indices.
        guesses: pairs of log_scale.
        solve: points of two images as they are at the guesses, and samples (S, k) of these -> poses (p, 3, 4), and (p,)
            the sample each comes from.
    """
    turns = np.arange(len(samples)) % len(guesses)
    order = np.argsort(turns, kind="stable")
    sampled = points.subset(samples[order].ravel())
    scales = np.array([[exp(-log_scale) for log_scale in guess] for guess in guesses])
    scales = scales[turns[order]].repeat(samples.shape[1], axis=0)
    index = np.arange(samples.size, dtype=np.int32).reshape(samples.shape)
    poses, of_sample = solve(sampled.points1 * scales[:, :1], sampled.points2 * scales[:, 1:], index)
    intrinsics = np.zeros((len(poses), 3, 2))
    intrinsics[:, 0] = np.array(guesses)[turns[order][of_sample]]
    return np.concatenate([poses, intrinsics], axis=2)


def with_model(camera: Camera, intrinsics: Array, focal_deviation: float) -> Camera:
    """A camera as given with the intrinsics (log_scale, x, y) of a model, and the deviation of its focal length."""
    log_scale, x, y = intrinsics
    return camera.adjusted(exp(log_scale), (x * camera.fx, y * camera.fy), focal_deviation)


def precision(weight: float, deviation: float) -> float:
    """What is added to the cost for the square of a number of a deviation; infinity holds what is exact."""
    return weight / deviation**2 if deviation > 0 else inf

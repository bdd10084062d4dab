"""The relative pose of cameras whose focal lengths are uncertain or unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.computed_once import computed_once
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
from caransac.robust.problems.base import Traits, log_scales_of, posterior_information, with_intrinsics
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.problems.relative import CameraPrior, RelativePoseProblem, choose_pose, pack_rays
from caransac.tuning import CAMERAS, ERRORS


class FocalPose(RelativePoseProblem):
    """Points are normalised by the given cameras; models are [R | t | a1 | a2], (3, 6).

    The intrinsics a = (log_scale, x, y) of a camera are relative to the given ones: the focal length is the given one
    times ``exp(log_scale)``, and the principal point is off by ``(x, y)`` times the given focal length.

    Attributes:
        cameras: the given cameras.
        guessed: whether the sizes of the images are unknown.
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
        """Make the problem from pixels (N, 2) of two cameras, like `Essential.from_pixels`.

        `centre_deviation` is the deviation of principal points, divided by the longer side of the image, if the sizes
        of the images are unknown.
        """
        rays, usable = pack_rays(pixels1, pixels2, camera1, camera2)
        return cls(rays, (camera1, camera2), shared, usable, centre_deviation)

    def _log_scales(self, steps: tuple[float, ...]) -> list[tuple[float, float]]:
        """Return pairs of log_scale at these steps from the given focal lengths; a step of one is a prior deviation."""
        first, second = ([step * prior.focal for step in steps] for prior in self.priors)
        return [(scale, scale) for scale in first] if self.shared else list(product(first, second))

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 5) for models (m, 3, 6), at several focal lengths in turn."""
        guesses = self._log_scales(CAMERAS.focal_steps if self.shared else CAMERAS.focal_steps_apart)
        return solve_in_turns(self.correspondences, samples, guesses, pack, five_point_poses)

    def from_public(self, model: Array) -> Array:
        """Convert a pose or a fundamental matrix to a model (3, 6).

        A pose gets the intrinsics of the given cameras. For a matrix, the focal lengths are chosen from a grid that is
        wider than the prior, so that it is closest to an essential matrix.
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
        """Return the prior of the focal lengths and principal points; see `Problem.intrinsics_prior`."""
        if model is None or weights is None:
            focals = [prior.focal for prior in self.with_tails().priors]
            return IntrinsicsPrior(**self._precisions(ERRORS.cameras * noise**2, focals))
        return IntrinsicsPrior(**self._precisions(self.prior_weight(noise, model, weights), self._deviations(model)))

    def _deviations(self, model: Array) -> list[float]:
        """Return deviations of the Gaussian priors that equal the heavy-tailed prior of unknown cameras at a model."""
        found = []
        for prior, log_scale in zip(self.priors, log_scales_of(model), strict=True):
            relative_sq = (log_scale / prior.focal) ** 2 if prior.unknown else 1.0
            found.append(prior.focal * float((CAMERAS.tails + relative_sq) / (CAMERAS.tails + 1)) ** 0.5)
        return found

    def prior_weight(self, noise: float, model: Array, weights: Array) -> float:
        """Return the weight of the prior in the cost. It is larger if the matches hardly determine the focal length."""
        unit = ERRORS.cameras * noise**2
        points = self.model_kernels.information(model, self.correspondences, weights) / unit
        variances = symmetric_inverse(posterior_information(points, self._centre_information)).diagonal()
        ratios = (variances[RELATIVE.focal(k)] / prior.focal**2 for k, prior in enumerate(self.priors) if prior.focal)
        return unit * min(max([1.0, *(CAMERAS.weak**2 * float(ratio) for ratio in ratios)]), CAMERAS.max_temper)

    @property
    @computed_once
    def _centre_information(self) -> Array:
        """Information (11, 11) of the prior of the principal points."""
        return self._information([inf, inf])

    def held_focal_prior(self, noise: float) -> IntrinsicsPrior:
        """Return the prior of intrinsics whose focal lengths are fixed."""
        return IntrinsicsPrior(**self._precisions(ERRORS.cameras * noise**2, [0.0, 0.0]))

    def _precisions(self, weight: float, focals: list[float]) -> dict[str, Any]:
        """Return the arguments of `IntrinsicsPrior` for a weight and the deviations of the log_scales."""
        own = 0.5 * weight if self.shared else weight  # one camera has one prior, half of it in each image
        sizes = [(camera.width, camera.height) for camera in self.cameras]
        return {
            "log_scale": tuple(precision(own, focal) for focal in focals),
            "centre": tuple(precision(own, prior.centre) for prior in self.priors),
            "log_scale_difference": weight / CAMERAS.focal_difference**2 if self.shared else 0.0,
            # A rotated image has another principal point.
            "centre_difference": weight / CAMERAS.centre_difference**2 if self.shared and sizes[0] == sizes[1] else 0.0,
        }

    @property
    def prior_information(self) -> Array:
        """Information (11, 11) of the prior of the intrinsics."""
        return self._information([prior.focal for prior in self.priors])

    def _information(self, focals: list[float]) -> Array:
        """Return the information (11, 11) of the prior, given the deviations of uncertain log_scales."""
        focals = [focal if prior.focal > 0 else 0.0 for focal, prior in zip(focals, self.priors, strict=True)]
        known, (first, second) = self._precisions(1.0, focals), (RELATIVE.camera(0), RELATIVE.camera(1))
        information = np.zeros((RELATIVE.with_intrinsics,) * 2)
        between = np.diag([known["log_scale_difference"], *[known["centre_difference"]] * 2])
        information[first, second] = information[second, first] = -between
        for camera, focal, centre in zip((first, second), known["log_scale"], known["centre"], strict=True):
            information[camera, camera] = np.diag([focal, centre, centre]) + between
        return information

    def fundamentals(self, models: Array) -> Array:
        """Return fundamental matrices (m, 3, 3) for pixels from models (m, 3, 6). They have Frobenius norm one."""
        return np.array([self._fundamental(model) for model in models]).reshape(-1, 3, 3)

    def _fundamental(self, model: Array) -> Array:
        Ks = []
        for camera, (log_scale, x, y) in zip(self.cameras, model[:, 4:].T, strict=True):
            Ks.append(camera.K @ [[exp(log_scale), 0, x], [0, exp(log_scale), y], [0, 0, 1]])
        F = fundamental_from_essential(essential_from_pose(*split_pose(model[:, :4])), *Ks)
        return np.asarray(F / np.linalg.norm(F))


def solve_in_turns(
    points: Correspondences,
    samples: Indices,
    guesses: list[tuple[float, float]],
    pack_points: Callable[[Array, Array], Correspondences],
    solve: Callable[[Correspondences, Indices], tuple[Array, Indices]],
) -> Array:
    """Solve samples (S, k), each at one of the guessed pairs of log_scales in turn, for models (m, 3, 6).

    `solve` returns poses (p, 3, 4) and the index (p,) of the sample of each pose.
    """
    turns = np.arange(len(samples)) % len(guesses)
    order = np.argsort(turns, kind="stable")
    sampled = points.subset(samples[order].ravel())
    scales = np.array([[exp(-log_scale) for log_scale in guess] for guess in guesses])
    scales = scales[turns[order]].repeat(samples.shape[1], axis=0)
    index = np.arange(samples.size, dtype=np.int32).reshape(samples.shape)
    scaled = pack_points(sampled.points1 * scales[:, :1], sampled.points2 * scales[:, 1:])
    poses, of_sample = solve(scaled, index)
    intrinsics = np.zeros((len(poses), 3, 2))
    intrinsics[:, 0] = np.array(guesses)[turns[order][of_sample]]
    return np.concatenate([poses, intrinsics], axis=2)


def with_model(camera: Camera, intrinsics: Array, focal_deviation: float) -> Camera:
    """Return a camera with the intrinsics (log_scale, x, y) of a model and the given deviation of its focal length."""
    log_scale, x, y = intrinsics
    return camera.adjusted(exp(log_scale), (x * camera.fx, y * camera.fy), focal_deviation)


def precision(weight: float, deviation: float) -> float:
    """Return the weight of a squared parameter in the cost, given its deviation; infinity for an exact one."""
    return weight / deviation**2 if deviation > 0 else inf

"""The relative pose of cameras whose focal lengths are uncertain or unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera, mean_pixel
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import Array, essential_from_pose, fundamental_from_essential, split_pose, symmetric_inverse
from caransac.kernels import FOCAL_POSES, RELATIVE, Correspondences, Indices, IntrinsicsPrior, five_point_poses, pack
from caransac.robust.problems.base import USUAL_DISTORTION, intrinsics_of, log_scales_of, with_intrinsics, with_prior
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.problems.relative import RelativePoseProblem, pack_rays
from caransac.tuning import CAMERAS

# The deviation of a refined focal length: as if matches said less by this factor, the prior of an unknown camera were
# as wide as its tails, and the lens were bent as lenses are. On training pairs as they are, cropped and zoomed, the
# errors are then 0.9 of the deviation in the median, and 0.8 of them within two.
STATED_TEMPER = CAMERAS.temper * CAMERAS.max_temper


@dataclass(frozen=True)
class CameraPrior:
    """The prior of the intrinsics of a camera around those given, as deviations.

    Attributes:
        focal: of the logarithm of the focal length; 0 for exact.
        centre: of the principal point, in focal lengths; 0 for exact.
    """

    focal: float
    centre: float

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of the focal length."""
        return self.focal >= UNKNOWN_FOCAL_DEVIATION

    def log_scales(self, steps: tuple[float, ...]) -> list[float]:
        """Focal lengths that samples are solved at, so many deviations from that given; it alone where it is sharp."""
        return [step * self.focal for step in steps] if self.focal > CAMERAS.sharp else [0.0]

    @classmethod
    def of(cls, camera: Camera, centre_deviation: float) -> CameraPrior:
        """What is known of a camera; one whose focal length is exact has an exact principal point, too."""
        longer = max(camera.width, camera.height) or camera.mean_focal / UNKNOWN_FOCAL
        uncertain = camera.focal_deviation > 0
        return cls(camera.focal_deviation, centre_deviation * longer / camera.mean_focal if uncertain else 0.0)


class FocalPose(RelativePoseProblem):
    """Points are normalised by the cameras as given; models are [R | t | a1 | a2], (3, 6).

    The intrinsics a = (log_scale, x, y) of a camera are relative to the camera as given: its focal length is
    ``exp(log_scale)`` times that, its principal point ``(x, y)`` of its focal lengths away.

    Attributes:
        cameras: as given.
        shared: whether both images come from one camera.
        guessed: whether not even the sizes of the images are known.
    """

    name = "focal"
    has_rotation = True
    usual_focal = 1.0
    model_kernels = FOCAL_POSES

    def __init__(
        self,
        correspondences: Correspondences,
        cameras: tuple[Camera, Camera],
        shared: bool,
        usable: NDArray[np.bool_] | None = None,
        centre_deviation: float = CAMERAS.centre_deviation,
    ) -> None:
        super().__init__(correspondences, mean_pixel(*cameras), usable, LensPrior.of(*cameras, shared))
        self.cameras, self.shared = cameras, shared
        self._priors = CameraPrior.of(cameras[0], centre_deviation), CameraPrior.of(cameras[1], centre_deviation)
        self.guessed = centre_deviation > CAMERAS.centre_deviation

    @classmethod
    def from_pixels(
        cls,
        pixels1: Array,
        pixels2: Array,
        camera1: Camera,
        camera2: Camera,
        shared: bool,
        centre_deviation: float = CAMERAS.centre_deviation,
    ) -> FocalPose:
        """The problem of pixels (N, 2) of two cameras, as `Essential.from_pixels`.

        `centre_deviation` is of their principal points, in the longer side of the image.
        """
        rays, usable = pack_rays(pixels1, pixels2, camera1, camera2)
        return cls(rays, (camera1, camera2), shared, usable, centre_deviation)

    def _log_scales(self) -> list[tuple[float, float]]:
        """Pairs of log_scale that samples are solved at."""
        steps = CAMERAS.focal_steps if self.shared else CAMERAS.focal_steps_apart
        first, second = (prior.log_scales(steps) for prior in self._priors)
        return [(scale, scale) for scale in first] if self.shared else list(product(first, second))

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`; samples take turns with the focal lengths that they are solved at."""

        def solve_scaled(points1: Array, points2: Array, index: Indices) -> tuple[Array, Indices]:
            return five_point_poses(pack(points1, points2), index)

        return solve_in_turns(self.correspondences, samples, self._log_scales(), solve_scaled)

    def from_public(self, model: Array) -> Array:
        """See `Problem.from_public`: with the cameras as given."""
        return with_intrinsics(model)

    def intrinsics_prior(
        self, noise: float, model: Array | None = None, weights: Array | None = None
    ) -> IntrinsicsPrior:
        """See `Problem.intrinsics_prior`."""
        if model is None or weights is None:
            widths = (prior.focal * (CAMERAS.first_widening if prior.unknown else 1.0) for prior in self._priors)
            return self._prior(CAMERAS.temper * noise**2, *widths)
        return self._prior(self._temper(model, weights, noise) * noise**2, *self._deviations(model))

    def _deviations(self, model: Array) -> list[float]:
        """Deviations of the focal lengths whose Gaussian prior pulls a model as the prior of unknown cameras does."""
        found = []
        for prior, log_scale in zip(self._priors, log_scales_of(model), strict=True):
            relative_sq = (log_scale / prior.focal) ** 2 if prior.unknown else 1.0
            found.append(prior.focal * float((CAMERAS.tails + relative_sq) / (CAMERAS.tails + 1)) ** 0.5)
        return found

    def prior_weight(self, noise: float, model: Array, weights: Array) -> float:
        """What the prior counts for in the cost of the weighted refinement, in units of its information."""
        return self._temper(model, weights, noise) * noise**2

    @property
    def confidence_name(self) -> str:
        """See `Problem.confidence_name`."""
        return "guessed" if self.guessed else self.name

    @property
    def free_parameters(self) -> dict[str, int]:
        """See `Problem.free_parameters`: the logarithms of the focal lengths that are refined."""
        if self.shared:
            return {"focal": RELATIVE.focal()}
        return {f"focal{k + 1}": RELATIVE.focal(k) for k, prior in enumerate(self._priors) if prior.focal > 0}

    def held_focal_prior(self, noise: float) -> IntrinsicsPrior:
        """As `intrinsics_prior`, with the focal lengths held where they are."""
        return self._prior(CAMERAS.temper * noise**2, 0.0, 0.0)

    def _prior(self, weight: float, focal1: float, focal2: float) -> IntrinsicsPrior:
        """The prior of deviations of the two log_scales, in units of the cost."""
        own = 0.5 * weight if self.shared else weight  # one camera has one prior, half of it in each image
        first, second = self._priors
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
        points /= CAMERAS.temper * noise**2
        said = symmetric_inverse(with_prior(points, self._prior_information(focal_prior=False)))
        variances = np.diag(said)
        ratios = [
            variances[RELATIVE.focal(k)] / prior.focal**2 for k, prior in enumerate(self._priors) if prior.focal > 0
        ]
        return CAMERAS.temper * float(np.clip(CAMERAS.weak**2 * max(ratios, default=0.0), 1.0, CAMERAS.max_temper))

    @property
    def prior_information(self) -> Array:
        """See `Problem.prior_information`: what is known of the cameras."""
        return self._prior_information(focal_prior=True)

    def _prior_information(self, *, focal_prior: bool) -> Array:
        """The same, with or without what is known of uncertain focal lengths."""
        diagonal = np.zeros(self.model_kernels.degrees_of_freedom)
        share = 0.5 if self.shared else 1.0
        for camera, prior in enumerate(self._priors):
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

    def with_tails(self) -> FocalPose:
        """The same with the prior of unknown cameras as wide as its tails."""
        wide = self._copy()
        wide._priors = (_with_tail(self._priors[0]), _with_tail(self._priors[1]))
        return wide

    def refined_cameras(self, model: Array, weights: Array, noise: float) -> tuple[Camera, Camera]:
        """The cameras of a model, with the deviations that matches of weights (n,) and the prior leave."""
        wide = self.with_tails()
        covariance = symmetric_inverse(wide.information(model, weights, noise * STATED_TEMPER**0.5))
        response = wide.lens_response(model, weights, noise)
        bias = np.zeros(len(covariance)) if response is None else USUAL_DISTORTION * response
        found = []
        for index, camera in enumerate(self.cameras):
            own, widest = RELATIVE.focal(index), wide._priors[index].focal
            deviation = min(float(np.hypot(max(covariance[own, own], 0.0) ** 0.5, bias[own])), widest)
            found.append(with_model(camera, intrinsics_of(model, index), deviation))
        return found[0], found[1]

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


def _with_tail(prior: CameraPrior) -> CameraPrior:
    """The prior of a camera with the tails of what is not known at all."""
    return replace(prior, focal=max(prior.focal, CAMERAS.free_deviation)) if prior.unknown else prior


def precision(weight: float, deviation: float) -> float:
    """What is added to the cost for the square of a number of a deviation; infinity holds what is exact."""
    return weight / deviation**2 if deviation > 0 else inf

"""The relative pose of calibrated cameras."""

from __future__ import annotations

from caransac.camera import Camera, mean_pixel
from caransac.geometry import Array
from caransac.kernels import POSES, Indices, five_point_poses
from caransac.robust.problems.base import Traits
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.problems.relative import RelativePoseProblem, pack_rays


class Essential(RelativePoseProblem):
    """Points are normalised image coordinates; models are poses [R | t], (3, 4)."""

    traits = Traits(
        confidence="essential",
        degeneracy="two views",
        uncertainty=True,
        exact_cameras=True,
        usual_focal=1.0,
        has_mean=True,
    )
    model_kernels = POSES

    @classmethod
    def from_pixels(
        cls, pixels1: Array, pixels2: Array, camera1: Camera, camera2: Camera, shared: bool = False
    ) -> Essential:
        """Make the problem from pixels (N, 2) of two cameras. Matches with a pixel that has no ray are not usable.

        `shared` means that one camera took both images, so both have the same uncertain lens.
        """
        rays, usable = pack_rays(pixels1, pixels2, camera1, camera2)
        return cls(rays, mean_pixel(camera1, camera2), usable, LensPrior.of(camera1, camera2, shared))

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 5) for poses (m, 3, 4) that have the sample in front of both cameras."""
        return five_point_poses(self.correspondences, samples)[0]

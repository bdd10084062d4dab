"""The compiled kernels, typed and documented; the only importer of the compiled module.

Points become `Correspondences` once; the kernels read those. Coordinates are of the order of one: normalised image
coordinates, or centred and scaled pixels. All kernels release the interpreter lock, keep no state and give the same
answer for the same input.
"""

from __future__ import annotations

from caransac import _native
from caransac._native import Activation, Correspondences, IntrinsicsPrior, Loss, RefineOptions, Regions, ScoreKind
from caransac.kernels._arrays import Indices, where
from caransac.kernels.degrees_of_freedom import ABSOLUTE, RELATIVE
from caransac.kernels.lens_poses import change_lenses, lens_information, refine_lens_pose
from caransac.kernels.models import (
    ABSOLUTE_FOCAL_POSES,
    ABSOLUTE_POSES,
    FOCAL_POSES,
    FUNDAMENTALS,
    HOMOGRAPHIES,
    POSES,
    RAY_POSES,
    ModelKernels,
    positive_depths,
)
from caransac.kernels.networks import Layer, StateKernels, fourier_features, mlp, neighbour_features, side_information
from caransac.kernels.points import (
    calibrate,
    inner_products,
    most_likely,
    normalise,
    pack,
    pack_space,
    sample_prosac,
    sample_uniform,
    widths,
)
from caransac.kernels.solvers import (
    five_point,
    five_point_poses,
    four_point,
    plane_poses,
    real_roots,
    seven_point,
    three_point,
)

__all__ = [
    "ABSOLUTE",
    "ABSOLUTE_FOCAL_POSES",
    "ABSOLUTE_POSES",
    "FOCAL_POSES",
    "FUNDAMENTALS",
    "HOMOGRAPHIES",
    "POSES",
    "RAY_POSES",
    "RELATIVE",
    "Activation",
    "Correspondences",
    "Indices",
    "IntrinsicsPrior",
    "Layer",
    "Loss",
    "ModelKernels",
    "RefineOptions",
    "Regions",
    "ScoreKind",
    "StateKernels",
    "calibrate",
    "change_lenses",
    "five_point",
    "five_point_poses",
    "four_point",
    "fourier_features",
    "inner_products",
    "instruction_set",
    "lens_information",
    "mlp",
    "most_likely",
    "neighbour_features",
    "normalise",
    "pack",
    "pack_space",
    "plane_poses",
    "positive_depths",
    "real_roots",
    "refine_lens_pose",
    "sample_prosac",
    "sample_uniform",
    "seven_point",
    "side_information",
    "sources_digest",
    "three_point",
    "where",
    "widths",
]


def instruction_set() -> str:
    """Instruction set in use: "baseline", "avx2" or "avx512".

    The best one the CPU has, unless the environment variable CARANSAC_INSTRUCTION_SET asks for a lesser one.
    """
    return _native.instruction_set()


def sources_digest() -> str:
    """Digest of the C++ sources that the kernels were compiled from, the same on every platform."""
    return _native.sources_digest()

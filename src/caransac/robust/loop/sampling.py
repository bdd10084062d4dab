"""Samplers: which minimal samples the estimator tries, and in what order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caransac import kernels
from caransac.geometry import Floats
from caransac.kernels import Indices
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


class Sampler(Protocol):
    """Draws minimal samples. A sample depends on its number, not on how the draws are batched."""

    @property
    def pool(self) -> Indices:
        """The points that samples are drawn from."""

    def draw(self, first: int, count: int) -> Indices:
        """Return the samples first .. first + count - 1: (count, sample_size) indices of points."""


# (matches, sampler of the method) -> sampler to use instead
DrawStep = Callable[[Problem, Sampler], Sampler]


@dataclass(frozen=True, eq=False)
class PoolSampler:
    """Draws from a pool of points, uniformly or, if the pool is ordered, by PROSAC (Chum and Matas, CVPR 2005).

    PROSAC begins with the first points of the pool and gradually includes all of them.
    """

    pool: Indices
    sample_size: int
    seed: int
    ordered: bool = False

    def draw(self, first: int, count: int) -> Indices:
        """Return the samples first .. first + count - 1: (count, sample_size) indices of points."""
        sample = kernels.sample_prosac if self.ordered else kernels.sample_uniform
        return sample(self.pool, self.sample_size, count, seed=self.seed, first=first)


def sampling_pool(probabilities: Floats, sample_size: int, count: int, tuning: Tuning) -> Indices:
    """Return the pool for `count` samples: the likely inliers, but at least the `min_pool` most likely matches."""
    failure = (1 - tuning.pool_success) ** (1 / count)
    pool = kernels.where(probabilities > (1 - failure) ** (1 / sample_size))  # 0.39 for 256 samples of five
    if len(pool) < tuning.min_pool:
        pool = np.argsort(-probabilities, kind="stable")[: tuning.min_pool].astype(np.int32)
    return pool

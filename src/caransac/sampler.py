"""Samplers: which minimal samples the estimator tries, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.kernels import Indices


class Sampler(Protocol):
    """Draws minimal samples; a sample depends on its number alone, never on how the draws are batched."""

    @property
    def pool(self) -> Indices:
        """The points that samples are drawn from."""

    def draw(self, first: int, count: int) -> Indices:
        """Samples first .. first + count - 1: (count, sample_size) indices of points."""


@dataclass(frozen=True, eq=False)
class UniformSampler:
    """Every subset of the pool equally likely."""

    pool: Indices
    sample_size: int
    seed: int

    def draw(self, first: int, count: int) -> Indices:
        """See `Sampler.draw`."""
        return kernels.sample_uniform(self.pool, self.sample_size, count, seed=self.seed, first=first)


@dataclass(frozen=True, eq=False)
class ProsacSampler:
    """The most promising points first, by degrees all of them (Chum and Matas, CVPR 2005). The pool is ordered."""

    pool: Indices
    sample_size: int
    seed: int

    def draw(self, first: int, count: int) -> Indices:
        """See `Sampler.draw`."""
        return kernels.sample_prosac(self.pool, self.sample_size, count, seed=self.seed, first=first)


POOL_SUCCESS = 0.9  # probability of a sample without outliers in a round, were the pool's worst point typical
MIN_POOL = 15


def draw_from_pool(probabilities: Floats, sample_size: int, count: int, seed: int, first: int) -> Indices:
    """Samples first .. first + count - 1, uniform inside the pool of points that are likely inliers: (count, size)."""
    threshold = (1 - (1 - POOL_SUCCESS) ** (1 / count)) ** (1 / sample_size)  # 0.39 for five of 256
    pool = np.flatnonzero(probabilities > threshold)
    if len(pool) < MIN_POOL:
        pool = np.argsort(-probabilities, kind="stable")[:MIN_POOL]
    return kernels.sample_uniform(pool.astype(np.int32), sample_size, count, seed=seed, first=first)


def order_by_score(scores: Array, higher_is_better: bool) -> Indices:
    """Point indices, best score first; equal scores keep their order."""
    return np.argsort(-scores if higher_is_better else scores, kind="stable").astype(np.int32)

"""Samplers: which minimal samples the estimator tries, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from caransac import kernels
from caransac.geometry import Floats
from caransac.kernels import Indices
from caransac.learned.sample_quality import Quality
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


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


@dataclass(frozen=True, eq=False)
class SelectiveSampler:
    """The most promising of every so many samples of another sampler.

    Attributes:
        sampler: what draws.
        problem: the points.
        quality: what tells promising samples.
        oversampling: samples drawn for every one that is kept.
    """

    sampler: Sampler
    problem: Problem
    quality: Quality
    oversampling: int

    @property
    def pool(self) -> Indices:
        """See `Sampler.pool`."""
        return self.sampler.pool

    def draw(self, first: int, count: int) -> Indices:
        """See `Sampler.draw`."""
        samples = self.sampler.draw(first * self.oversampling, count * self.oversampling)
        if self.oversampling == 1:
            return samples
        points1, points2 = self.problem.points1, self.problem.points2
        qualities = self.quality(points1.take(samples, axis=0), points2.take(samples, axis=0))
        best = qualities.reshape(count, self.oversampling).argmax(axis=1)
        return np.asarray(samples[self.oversampling * np.arange(count) + best])


def sampling_pool(probabilities: Floats, sample_size: int, count: int, tuning: Tuning) -> Indices:
    """The pool to draw `count` samples of a round from: matches likely to be inliers, or the most likely ones."""
    failure = (1 - tuning.pool_success) ** (1 / count)
    pool = kernels.where(probabilities > (1 - failure) ** (1 / sample_size))  # 0.39 for five of 256
    if len(pool) < tuning.min_pool:
        pool = np.argsort(-probabilities, kind="stable")[: tuning.min_pool].astype(np.int32)
    return pool

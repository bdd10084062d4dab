"""Oversampling: draw several minimal samples for each one that is solved, and solve the most promising ones.

`oversample` creates the argument ``draw`` of `caransac.robust.pipeline.estimate_model`. `estimate_pose` and
`estimate_fundamental` correspond to `caransac.estimate_relative_pose` and `caransac.estimate_fundamental` with it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from caransac.api.guessed_cameras import estimate_uncalibrated
from caransac.api.result_fields import assessed, report_common
from caransac.api.same_camera import could_be_one
from caransac.camera import Camera
from caransac.geometry import Array, split_pose
from caransac.kernels import Indices
from caransac.options import Options
from caransac.robust.loop.sampling import DrawStep, Sampler
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Essential, Problem
from caransac.robust.records import MatchInfo
from caransac_lab.networks.sample_quality import Quality, load_quality

MOST_DRAWN = 10**6  # maximum number of samples per round


@dataclass(frozen=True, eq=False)
class SelectiveSampler:
    """Select the most promising samples of another sampler.

    Attributes:
        sampler: the sampler to draw with.
        problem: problem with the matches.
        quality: function that rates samples.
        oversampling: number of samples drawn for each one that is kept.
    """

    sampler: Sampler
    problem: Problem
    quality: Quality
    oversampling: int

    @property
    def pool(self) -> Indices:
        """The sampling pool of the underlying sampler."""
        return self.sampler.pool

    def draw(self, first: int, count: int) -> Indices:
        """Draw `count` samples, the best of each group of `oversampling` samples."""
        samples = self.sampler.draw(first * self.oversampling, count * self.oversampling)
        if self.oversampling == 1:
            return samples
        points1, points2 = self.problem.points1, self.problem.points2
        qualities = self.quality(points1.take(samples, axis=0), points2.take(samples, axis=0))
        best = qualities.reshape(count, self.oversampling).argmax(axis=1)
        return np.asarray(samples[self.oversampling * np.arange(count) + best])


def oversample(oversampling: int, quality: str | Path = "geometric") -> DrawStep:
    """Create a draw step that keeps the most promising of every `oversampling` samples.

    Args:
        oversampling: number of samples drawn for each one that is solved.
        quality: "geometric" prefers samples that spread in both images; "sample-quality" uses the lab's network. A path
            uses weights of ``caransac-lab train --sample-quality``.
    """
    if not 1 <= oversampling <= MOST_DRAWN:
        raise ValueError(f"oversampling must be from 1 to a million, not {oversampling}")
    return partial(_select, quality=load_quality(quality), oversampling=oversampling)


def _select(problem: Problem, sampler: Sampler, quality: Quality, oversampling: int) -> Sampler:
    return SelectiveSampler(sampler, problem, quality, oversampling)


def estimate_pose(
    points1: Array, points2: Array, camera1: Camera, camera2: Camera, info: MatchInfo, options: Options, draw: DrawStep
) -> tuple[tuple[Array, Array] | None, dict[str, Any]]:
    """Estimate the relative pose of exact cameras. Return (R, t) or None, and the fields of the result."""
    started = time.perf_counter()
    problem = Essential.from_pixels(points1, points2, camera1, camera2, could_be_one(camera1, camera2))
    found = estimate_model(problem, info, options, draw)
    problem = problem.through(found.k1)
    pose = None if found.model is None else split_pose(problem.public(found.model[None])[0])
    return pose, report_common(problem, found, options, started) | assessed(found)


def estimate_fundamental(
    points1: Array, points2: Array, info: MatchInfo, options: Options, draw: DrawStep
) -> tuple[Array | None, dict[str, Any]]:
    """Estimate the fundamental matrix of images of unknown size. Return F or None, and the fields of the result."""
    started = time.perf_counter()
    problem, found = estimate_uncalibrated(points1, points2, info, options, draw)
    F = None if found.model is None else problem.fundamentals(found.model[None])[0]
    return F, report_common(problem, found, options, started, problem.fundamentals) | assessed(found)

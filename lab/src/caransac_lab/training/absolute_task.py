"""Train the state network of absolute poses, on queries made from the matches of many images."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from caransac._support.arrays import take_usable
from caransac.geometry import Array, split_pose
from caransac.learned.side_information import side_information
from caransac.options import MaxError
from caransac.robust.problems import Absolute
from caransac.robust.records import MatchInfo
from caransac_lab.datasets import Pair, Query
from caransac_lab.datasets.queries import QueryImage, read_query_images
from caransac_lab.synthetic.distributions import log_uniform
from caransac_lab.training.data import (
    HELD_OUT,
    MIN_INLIERS,
    Example,
    known_camera,
    random_threshold,
    read_pairs,
    scene_chances,
    with_other_scores,
)
from caransac_lab.training.hard_queries import HardQuery, harden, in_space, take
from caransac_lab.training.state_task import LoopTask
from caransac_lab.training.task import PairLoss
from caransac_lab.training.trainable_module import TrainableModule

MOST_REFERENCES = 3
FOCAL_SHARE = 0.2  # share of the training queries with an uncertain focal length
# Share of queries with added noise, and its deviations.
NOISY, NOISES_PX, SPACE_NOISES_PX = 0.35, (0.2, 2.0), (0.2, 2.0)
REPEATED = 0.15  # share of queries with a repeated structure: right matches of one place that lead to another
SUBSETS, SMALLEST_SUBSET = 0.3, 20  # share of queries with only some matches, and the minimum number of matches
# "copy" is listed twice, because copies are the most misleading kind.
HARD_QUERIES: tuple[HardQuery, ...] = (*get_args(HardQuery), "copy")
HARD_SHARE = 0.15  # share of hard training queries: planes, far points, few matches


@dataclass(frozen=True, eq=False)
class AbsoluteExample(Example):
    """One query in the form for the loop and the loss.

    Attributes:
        query: original query, with only the matches for which the camera has rays.
    """

    query: Query

    def pose_error_deg(self, model: Array) -> float:
        """Return the error of an absolute pose in degrees."""
        return self.query.error_deg(*split_pose(self.problem.public(model[None])[0]))


class QuerySource:
    """A source of queries. The weight of every scene is the square root of its number of images."""

    def __init__(self, images: Sequence[QueryImage]) -> None:
        self.images = list(images)
        self._chances = scene_chances([image.scene for image in self.images])

    def balanced(self) -> QuerySource:
        """Return the same source with equal weight for every folder."""
        source = copy(self)
        source._chances = scene_chances([image.scene for image in self.images], balanced=True)
        return source

    def draw(self, rng: np.random.Generator) -> Query:
        """Draw an augmented query with enough right matches."""
        while True:
            image = self.images[int(np.searchsorted(self._chances, rng.random()))]
            names = sorted(image.references)
            rng.shuffle(names)
            query = image.query(names[: int(rng.integers(1, MOST_REFERENCES + 1))])
            if query.right_matches().sum() >= MIN_INLIERS:
                return augment(query, rng)


class AbsoluteTask(LoopTask):
    """Task: the state network of absolute poses."""

    problems = ("absolute", "absolute_focal")

    def read_data(self) -> tuple[QuerySource, list[Query], list[Pair]]:
        """Read the training source, validation queries and unrelated pairs."""
        recipe = self.recipe
        if not recipe.data:
            raise ValueError("data: absolute poses are trained on real scenes; give at least one folder")
        images = _read_images(recipe.data)
        held_out = _read_images(recipe.val) if recipe.val else images[::HELD_OUT]
        source = QuerySource(images if recipe.val else [image for i, image in enumerate(images) if i % HELD_OUT])
        order = np.random.default_rng(recipe.seed).permutation(len(held_out))[: recipe.val_pairs]
        val = [held_out[i].query(sorted(held_out[i].references)[:1]) for i in order]
        return source, val, read_pairs([Path(folder) for folder in recipe.unrelated])

    def count_inputs(self, source: QuerySource, others: Sequence[Query | Pair]) -> int:  # all data have the same inputs
        """Return the number of inputs of the network per match."""
        return self.layout.num_inputs()

    def training_loss(self, network: TrainableModule, source: QuerySource, rng: np.random.Generator) -> PairLoss | None:
        """Return the loss of one query drawn from the source, or None if it has no gradient."""
        query = source.draw(rng)
        if rng.random() < HARD_SHARE:
            query = harden(query, ("plane", "far", "few")[int(rng.integers(3))], rng)
        name = "absolute_focal" if rng.random() < FOCAL_SHARE else "absolute"
        example = make_query_example(query, name, rng, random_threshold(rng))
        if example.problem.num_points < example.problem.sample_size:
            return None
        return self._replay(network, example, int(rng.integers(2**63)))

    def validation_loss(self, network: TrainableModule, pair: Query, index: int) -> PairLoss | None:
        """Return the loss of a validation query."""
        return self._replay(network, make_query_example(pair, "absolute", np.random.default_rng(index)), index)

    def evidence_example(
        self, source: QuerySource, unrelated: Sequence[Pair], problem_name: str, rng: np.random.Generator
    ) -> Example:
        """Draw a related query in half of the runs, otherwise a hard one, unrelated images, or random matches."""
        chance, max_error_px = rng.random(), random_threshold(rng)
        if chance < 0.15 and unrelated and rng.random() < 0.7:
            query = in_space(unrelated[int(rng.integers(len(unrelated)))], rng)
        elif chance < 0.15:
            query = source.draw(rng)
            query = replace(query, points3d=rng.permutation(query.points3d), R=None, t=None)
        elif chance < 0.65:
            query = source.draw(rng)
        else:
            kinds = [kind for kind in HARD_QUERIES if kind != "focal" or problem_name == "absolute"]
            query = harden(source.draw(rng), kinds[int(rng.integers(len(kinds)))], rng)
        return make_query_example(query, problem_name, rng, max_error_px)


def make_query_example(
    query: Query, problem_name: str, rng: np.random.Generator, max_error_px: MaxError = "auto"
) -> AbsoluteExample:
    """Prepare a query for the loop and the loss. For "absolute_focal", prior knowledge of its camera is drawn."""
    labels = query.right_matches()  # before noise is added, because noise does not make a match wrong
    query = with_noise(query, rng)
    camera = known_camera(query.camera, rng) if problem_name == "absolute_focal" else query.camera
    problem = Absolute.from_pixels(query.points2d, query.points3d, camera)
    given = MatchInfo(query.scores, query.score_kind)
    info = given.of_usable(problem.usable)
    return AbsoluteExample(
        problem=problem,
        rays=problem.correspondences,
        side=side_information(problem.correspondences, problem.spreads, info.scores, info.score_kind),
        info=info,
        labels=take_usable(labels, problem.usable),
        max_error_px=max_error_px,
        camera1=query.camera,
        camera2=query.camera,
        R=query.R,
        t=query.t,
        query=query,
    )


def augment(query: Query, rng: np.random.Generator) -> Query:
    """Augment a query at random: fewer matches, a repeated structure, or other scores."""
    if rng.random() < REPEATED:
        query = with_repetition(query, rng)
    if rng.random() < SUBSETS and len(query.points2d) > SMALLEST_SUBSET:
        size = int(log_uniform(rng, SMALLEST_SUBSET, len(query.points2d)))
        query = take(query, rng.permutation(len(query.points2d))[:size])
    return with_other_scores(query, rng)


def with_noise(query: Query, rng: np.random.Generator) -> Query:
    """Add noise to the keypoints and 3D points of a query, at random."""
    if rng.random() >= NOISY:
        return query
    pixels = query.points2d + log_uniform(rng, *NOISES_PX) * rng.normal(size=query.points2d.shape)
    depth = _median_depth(query)
    unit = log_uniform(rng, *SPACE_NOISES_PX) * depth / query.camera.mean_focal
    return replace(query, points2d=pixels, points3d=query.points3d + unit * rng.normal(size=query.points3d.shape))


def with_repetition(query: Query, rng: np.random.Generator) -> Query:
    """Move some right matches of one place together, like those of a repeated structure."""
    right = np.flatnonzero(query.right_matches() > 0)
    if len(right) < 2 * MIN_INLIERS:
        return query
    centre = query.points2d[rng.choice(right)]
    near = right[np.argsort(((query.points2d[right] - centre) ** 2).sum(axis=1))]
    near = near[: int(rng.uniform(0.1, 0.5) * len(near))]
    space = query.points3d.copy()
    step = space[rng.choice(right)] - space[near[0]]  # vector from one place of the scene to another
    space[near] = space[near] + rng.uniform(0.3, 1.0) * step
    return replace(query, points3d=space)


def _median_depth(query: Query) -> float:
    """Return the median depth of the points, or their spread if there is no pose."""
    if query.R is None or query.t is None:
        return float(np.median(np.abs(query.points3d - np.median(query.points3d, axis=0)))) * 2
    return max(float(np.median(query.points3d @ query.R[2] + query.t[2])), 1e-9)


def _read_images(folders: Sequence[str]) -> list[QueryImage]:
    """Read all images of folders of scenes. Scene names include the folder."""
    return [
        replace(image, scene=f"{Path(folder).parent.name}/{Path(folder).name}/{image.scene}")
        for folder in folders
        for image in read_query_images(folder)
    ]

"""Scores of matches with the distributions of common descriptors and matchers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array
from caransac_lab.synthetic.distributions import draw_beta, log_uniform


@dataclass(frozen=True)
class Descriptor:
    """Distribution of the ratios of one kind of feature, and its typical errors.

    The ratios of a pair follow Beta distributions, whose means and concentrations vary between pairs. The mean depends
    on the difficulty of the pair: ``logit(mean) = offset + slope * logit(inlier ratio) + deviation * normal``.

    Attributes:
        inlier_mean: offset, slope and deviation for right matches.
        inlier_concentration: mean and deviation of the logarithm of the concentration for right matches.
        outlier_mean: offset, slope and deviation for wrong matches.
        outlier_concentration: mean and deviation of the logarithm of the concentration for wrong matches.
        near_misses: mean share of wrong matches that lie on the right surface, a few pixels off.
        mutual: whether matches are mutual nearest neighbours. Otherwise many points share one point of image 2.
        levels: typical size of integer descriptor distances, which make ratios coarse; 0 for real-valued distances.
    """

    inlier_mean: tuple[float, float, float]
    inlier_concentration: tuple[float, float]
    outlier_mean: tuple[float, float, float]
    outlier_concentration: tuple[float, float]
    near_misses: float
    mutual: bool = True
    levels: int = 0


# Fitted by moments to mutual nearest neighbours in photographs of five places (RootSIFT, 300 pairs) and three places
# (ALIKED, 180 pairs). Matches within 1 px of the true geometry count as right, minus the number expected by chance.
# 20 % of RootSIFT's wrong matches and 50 % of ALIKED's lie within 160 px of the position that their right neighbours
# predict. The binary descriptor is an assumption: slightly less distinctive than RootSIFT, and quantised.
ROOTSIFT = Descriptor((0.53, -0.26, 0.37), (1.87, 0.39), (2.48, -0.05, 0.16), (2.76, 0.30), near_misses=0.15)
ALIKED = Descriptor((1.25, -0.47, 0.35), (2.36, 0.44), (3.02, -0.13, 0.21), (3.18, 0.46), near_misses=0.55)
BINARY = Descriptor((0.8, -0.25, 0.4), (2.1, 0.4), (2.4, -0.05, 0.2), (2.9, 0.3), 0.05, mutual=False, levels=60)
DESCRIPTORS = (ROOTSIFT, ROOTSIFT, ALIKED, ALIKED, BINARY)  # each pair draws one of them


def draw_ratios(rng: np.random.Generator, descriptor: Descriptor, inlier_ratio: float, looks_right: Array) -> Array:
    """Draw ratios (n,) of matches that look right (1) or wrong (0); values in between blend both distributions."""
    logit = np.log(np.clip(inlier_ratio, 0.01, 0.99) / np.clip(1 - inlier_ratio, 0.01, 0.99))
    right, wrong = (
        draw_beta(rng, offset + slope * logit + deviation * rng.normal(), np.exp(rng.normal(*spread)), len(looks_right))
        for (offset, slope, deviation), spread in (
            (descriptor.inlier_mean, descriptor.inlier_concentration),
            (descriptor.outlier_mean, descriptor.outlier_concentration),
        )
    )
    ratios = looks_right * right + (1 - looks_right) * wrong
    if descriptor.levels:
        second = np.round(descriptor.levels * np.exp(0.2 * rng.normal(size=len(ratios))))
        ratios = np.round(ratios * second) / second
    return np.asarray(ratios)


def draw_confidences(rng: np.random.Generator, ratios: Array) -> Array:
    """Convert ratios to confidences (n,) of a matcher that is saturated, soft or hardly informative, at random."""
    quality = 1 - ratios + 0.4 * rng.random() ** 3 * rng.normal(size=len(ratios))
    steepness, threshold = log_uniform(rng, 2, 60), rng.uniform(-0.1, 0.4)
    return np.asarray(1 / (1 + np.exp(-steepness * (quality - threshold))))

"""Scores of matches, as the descriptors and matchers in use distribute them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array
from caransac_lab.synthetic.distributions import draw_beta, log_uniform


@dataclass(frozen=True)
class Descriptor:
    """How the ratios of one kind of feature are distributed, and how it errs.

    Ratios of a pair follow Beta distributions. Their means and concentrations vary from pair to pair, and the means
    depend on how hard the pair is: ``logit(mean) = offset + slope * logit(inlier ratio) + deviation * normal``.

    Attributes:
        inlier_mean: offset, slope and deviation of the right matches.
        inlier_concentration: mean and deviation of the logarithm of the right matches' concentration.
        outlier_mean: offset, slope and deviation of the wrong matches.
        outlier_concentration: mean and deviation of the logarithm of the wrong matches' concentration.
        near_misses: mean share of wrong matches that lie on the right surface, some pixels off.
        mutual: whether matches are mutual nearest neighbours; otherwise many points share one of image 2.
        levels: descriptor distances are integers of about this size, so ratios are coarse; 0 for real numbers.
    """

    inlier_mean: tuple[float, float, float]
    inlier_concentration: tuple[float, float]
    outlier_mean: tuple[float, float, float]
    outlier_concentration: tuple[float, float]
    near_misses: float
    mutual: bool = True
    levels: int = 0


# Fitted by moments to mutual nearest neighbours in photographs of five places (RootSIFT, 300 pairs) and of three
# (ALIKED, 180 pairs): matches within 1 px of the true geometry are right, less those expected there by chance. Of the
# wrong ones 20 and 50 % lie within 160 px of where their right neighbours would put them. The binary descriptor is an
# assumption: a little less distinctive than RootSIFT, and quantised.
ROOTSIFT = Descriptor((0.53, -0.26, 0.37), (1.87, 0.39), (2.48, -0.05, 0.16), (2.76, 0.30), near_misses=0.15)
ALIKED = Descriptor((1.25, -0.47, 0.35), (2.36, 0.44), (3.02, -0.13, 0.21), (3.18, 0.46), near_misses=0.55)
BINARY = Descriptor((0.8, -0.25, 0.4), (2.1, 0.4), (2.4, -0.05, 0.2), (2.9, 0.3), 0.05, mutual=False, levels=60)
DESCRIPTORS = (ROOTSIFT, ROOTSIFT, ALIKED, ALIKED, BINARY)  # each pair draws one of them


def draw_ratios(rng: np.random.Generator, descriptor: Descriptor, inlier_ratio: float, looks_right: Array) -> Array:
    """Ratios (n,) of matches that look right or wrong, (n,) one or zero; in between blends the two."""
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
    """Confidences (n,) of a matcher that is saturated, soft or hardly informative, as the pair draws it."""
    quality = 1 - ratios + 0.4 * rng.random() ** 3 * rng.normal(size=len(ratios))
    steepness, threshold = log_uniform(rng, 2, 60), rng.uniform(-0.1, 0.4)
    return np.asarray(1 / (1 + np.exp(-steepness * (quality - threshold))))

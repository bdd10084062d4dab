"""The formula of the evidence of a robust fit about its precision."""

from __future__ import annotations

import numpy as np

from caransac.geometry.formulas import Array


def fit_evidence(
    residuals: Array,
    slopes: Array,
    weights: Array,
    shares: Array,
    *,
    noise: float,
    loss_scale: float,
    reach: float,
    last: float,
    steepest: float,
    by_chance: float,
    enough: int,
    freedoms: int,
) -> tuple[Array, Array, float, float, float, float]:
    """Return the sums over residuals that determine the precision of a robust fit.

    A match counts with its share, multiplied by its probability of being right. A wrong match of great influence draws
    the model to itself, and then seems to be precise. The probability is one minus the false discovery rate (Benjamini
    and Hochberg, 1995) among all matches with at least as much influence: wrong matches are equally frequent at any
    distance from the model, so those farther away give the number of those near it.

    Args:
        residuals: (n d,) residuals; each match has d.
        slopes: (n d, f) derivatives of the residuals.
        weights: (n,) weights of the matches in the fit.
        shares: (n,) the weights, reduced for matches that are not independent.
        noise: unit of `reach` and `last`.
        loss_scale: scale of the Cauchy loss.
        reach: distance within which a match may be right.
        last: distance beyond which matches are not used. Matches beyond half of it are wrong.
        steepest: length of the derivative of a match above which it is not used.
        by_chance: number of wrong matches that a model fits because it was chosen among many.
        enough: maximum number of matches to use, evenly spread.
        freedoms: number of degrees of freedom, the first ones, that determine the influence.

    Returns:
        right: (n,) weights of the matches; zero if not used.
        information: (f, f) information of the matches with these weights, at unit noise.
        thinning: number of matches that each used match represents.
        count: sum of the weights.
        pull: weighted sum of r psi(r), with the influence function psi of the loss.
        spread: sum of psi(r)^2, weighted by these weights and those of the fit.
    """
    n, dimensions = len(weights), max(len(residuals) // max(len(weights), 1), 1)
    slopes, squares = slopes.reshape(n, dimensions, -1), (residuals.reshape(n, dimensions) ** 2).sum(axis=1)
    near = squares < (last * noise) ** 2
    kept = np.flatnonzero(near & ((slopes**2).sum(axis=(1, 2)) < steepest**2))
    thinning = max(len(kept) / enough, 1.0)
    if thinning > 1:
        kept = kept[np.linspace(0, len(kept) - 1, enough).astype(int)]
    squares, slopes, weights, shares = squares[kept], slopes[kept], weights[kept], shares[kept]
    pose = slopes[:, :, :freedoms]
    own = np.einsum("n,ndi,ndj->ij", shares, pose, pose)
    own += (1e-9 * own.trace() + 1e-300) * np.eye(freedoms)
    order = np.argsort(-np.einsum("ndi,ij,ndj->n", pose, np.linalg.inv(own), pose), kind="stable")
    ranked, used = squares[order] / noise**2, shares[order] > 0
    inside, outside = (
        np.cumsum(used & (ranked < reach**2)),
        np.cumsum((ranked > (0.5 * last) ** 2) & (ranked < last**2)),
    )
    volume = reach**dimensions / (last**dimensions - (0.5 * last) ** dimensions)
    probabilities = np.empty(len(order))
    probabilities[order] = np.maximum(1 - (outside * volume + by_chance) / np.maximum(inside, 1), 0.0)
    right, relative = shares * probabilities, 1 / (1 + squares / loss_scale**2)
    information = np.einsum("n,ndi,ndj->ij", right, slopes, slopes)
    sums = right.sum(), (right * relative * squares).sum(), (right * weights * relative**2 * squares).sum()
    of_all = np.zeros(n)
    of_all[kept] = right
    return of_all, information, thinning, *map(float, sums)

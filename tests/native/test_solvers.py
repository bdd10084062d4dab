"""five_point and seven_point: true solutions, comparison with other libraries, and degenerate input."""

import numpy as np
import pytest
from scenes import distance_up_to_sign, essentials, random_poses, random_problems, solve

from caransac import kernels
from caransac.geometry import homogeneous

SOLVERS = {5: (kernels.five_point, np.sqrt(2), 10), 7: (kernels.seven_point, 1.0, 3)}


def with_norm(matrices, norm):
    return matrices * (norm / np.linalg.norm(matrices, axis=(-2, -1), keepdims=True))


@pytest.mark.parametrize("size", SOLVERS)
def test_the_true_matrix_is_among_the_solutions(rng, size):
    solver, norm, most = SOLVERS[size]
    count = 10_000
    x1, x2, R, t = random_problems(rng, count, size)
    models, sample = solve(solver, x1, x2)
    error = distance_up_to_sign(models, with_norm(essentials(R, t), norm)[sample])
    best = np.full(count, np.inf)
    np.minimum.at(best, sample, error)
    assert np.mean(best < 1e-6) >= 0.999
    assert np.all(np.diff(sample) >= 0)
    assert np.bincount(sample).max() <= most


def special_problems(rng, kind, count, size):
    """Create special motions and scenes, which occur in practice but not in random data."""
    X = np.concatenate([rng.uniform(-2, 2, (count, size, 2)), rng.uniform(3, 9, (count, size, 1))], axis=2)
    R, t = np.tile(np.eye(3), (count, 1, 1)), np.tile([1.0, 0, 0], (count, 1))
    if kind == "upside down":
        R[:] = np.diag([-1.0, -1, 1])
    elif kind == "forward":
        t[:] = (0, 0, 1)
    elif kind == "planar":
        R, t = random_poses(rng, count)
        X[..., 2] = 5 + 0.3 * X[..., 0] - 0.2 * X[..., 1]
    Y = np.einsum("sij,smj->smi", R, X) + t[:, None]
    x1, x2 = X[..., :2] / X[..., 2:], Y[..., :2] / Y[..., 2:]
    return x1, x2, R, t


@pytest.mark.parametrize("kind", ["rectified", "upside down", "forward", "planar"])
def test_special_motions_are_solved_too(rng, kind):
    count = 2000
    x1, x2, R, t = special_problems(rng, kind, count, 5)
    models, sample = solve(kernels.five_point, x1, x2)
    best = np.full(count, np.inf)
    np.minimum.at(best, sample, distance_up_to_sign(models, essentials(R, t)[sample]))
    assert np.mean(best < 1e-6) >= 0.995


@pytest.mark.parametrize("kind", ["rectified", "upside down", "forward"])
def test_special_motions_are_solved_without_calibration_too(rng, kind):
    count = 2000
    x1, x2, R, t = special_problems(rng, kind, count, 7)
    models, sample = solve(kernels.seven_point, x1, x2)
    best = np.full(count, np.inf)
    np.minimum.at(best, sample, distance_up_to_sign(models, with_norm(essentials(R, t), 1.0)[sample]))
    assert np.mean(best < 1e-6) >= 0.99


@pytest.mark.parametrize("size", SOLVERS)
def test_every_solution_satisfies_every_constraint(rng, size):
    solver, norm, _ = SOLVERS[size]
    x1, x2, _, _ = random_problems(rng, 1000, size)
    models, sample = solve(solver, x1, x2)
    assert np.allclose(np.linalg.norm(models, axis=(1, 2)), norm)
    epipolar = np.einsum("smi,sij,smj->sm", homogeneous(x2)[sample], models, homogeneous(x1)[sample])
    assert np.abs(epipolar).max() < 1e-9
    assert np.abs(np.linalg.det(models)).max() < 1e-9
    if size == 5:
        gram = models @ models.swapaxes(1, 2)
        trace = np.trace(gram, axis1=1, axis2=2)[:, None, None]
        violation = np.abs(gram @ models - 0.5 * trace * models).max(axis=(1, 2))
        assert violation.max() < 1e-9


def same_set(ours, theirs, tolerance=1e-5):
    if len(ours) != len(theirs):
        return False
    if len(ours) == 0:
        return True
    distance = distance_up_to_sign(ours[:, None], theirs[None])
    return distance.min(axis=0).max() < tolerance and distance.min(axis=1).max() < tolerance


@pytest.mark.slow
def test_five_point_agrees_with_poselib(rng):
    import poselib  # imported here, because the environment of the sanitizers has no peers

    count = 10_000
    x1, x2, _, _ = random_problems(rng, count, 5)
    models, sample = solve(kernels.five_point, x1, x2)
    ours = np.split(models, np.searchsorted(sample, np.arange(1, count)))
    agreed, compared = 0, 0
    for h1, h2, mine in zip(homogeneous(x1), homogeneous(x2), ours, strict=True):
        theirs = np.array(poselib.essential_matrix_5pt(h1, h2)).reshape(-1, 3, 3)
        if len(theirs):
            theirs = with_norm(theirs, np.sqrt(2))
            gram = theirs @ theirs.swapaxes(1, 2)
            violation = gram @ theirs - 0.5 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * theirs
            # Skip ill-conditioned samples, for which the other solver violates its own constraints.
            if np.abs(violation).max() > 1e-8:
                continue
        compared += 1
        agreed += same_set(mine, theirs)
    assert compared > 0.85 * count
    assert agreed / compared >= 0.999


def seven_point_by_numpy(x1, x2):
    """Return all real solutions, from a singular value decomposition and the eigenvalues of a companion matrix."""
    constraints = np.einsum("mi,mj->mij", homogeneous(x2), homogeneous(x1)).reshape(7, 9)
    first, second = np.linalg.svd(constraints)[2][-2:].reshape(2, 3, 3)
    nodes = np.array([-1.0, -0.4, 0.4, 1.0])
    cubic = np.polyfit(nodes, [np.linalg.det(z * first + second) for z in nodes], 3)
    roots = np.roots(cubic)
    real = roots[np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))].real
    return with_norm(real[:, None, None] * first + second, 1.0)


@pytest.mark.slow
def test_seven_point_agrees_with_numpy(rng):
    count = 10_000
    x1, x2, _, _ = random_problems(rng, count, 7)
    models, sample = solve(kernels.seven_point, x1, x2)
    ours = np.split(models, np.searchsorted(sample, np.arange(1, count)))
    agreed = sum(same_set(mine, seven_point_by_numpy(a, b)) for a, b, mine in zip(x1, x2, ours, strict=True))
    assert agreed / count >= 0.999


@pytest.mark.kernels
@pytest.mark.parametrize("size", SOLVERS)
@pytest.mark.parametrize("kind", ["one point", "repeated point", "collinear", "vast", "zeros"])
def test_degenerate_samples_have_no_solution(rng, size, kind):
    solver, _, _ = SOLVERS[size]
    x1, x2, _, _ = random_problems(rng, 9, size)
    good = solve(solver, x1, x2)[1]
    bad = 4
    if kind == "one point":
        x1[bad], x2[bad] = x1[bad, 0], x2[bad, 0]
    elif kind == "repeated point":
        x1[bad, 1], x2[bad, 1] = x1[bad, 0], x2[bad, 0]
    elif kind == "collinear":
        x1[bad] = x1[bad, 0] + rng.normal(size=(size, 1)) * (1, 0.5)
        x2[bad] = x2[bad, 0] + rng.normal(size=(size, 1)) * (-0.3, 1)
    elif kind == "zeros":
        x1[bad] = x2[bad] = 0
    else:
        x1[bad, 2, 1] = 1e200
    models, sample = solve(solver, x1, x2)
    assert np.all(np.isfinite(models))
    assert bad not in sample
    assert np.array_equal(sample, good[good != bad]), "a degenerate sample does not affect its neighbours"


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("solver", "size"), [(kernels.five_point, 5), (kernels.five_point_poses, 5), (kernels.seven_point, 7)]
)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 13, 400])
def test_batches_of_any_size_agree_with_single_samples(rng, solver, size, count):
    x1, x2, _, _ = random_problems(rng, max(count, 1), size)
    models, sample = solve(solver, x1[:count], x2[:count])
    singles = [solve(solver, x1[i : i + 1], x2[i : i + 1])[0] for i in range(count)]
    assert len(models) == sum(map(len, singles))
    for i, single in enumerate(singles):
        assert np.array_equal(models[sample == i], single)


@pytest.mark.kernels
@pytest.mark.parametrize("size", SOLVERS)
def test_samples_must_be_of_points(size):
    solver, _, _ = SOLVERS[size]
    points = kernels.pack(np.zeros((9, 2)), np.zeros((9, 2)))
    with pytest.raises(TypeError):
        solver(points, np.zeros((3, 4), np.int32))
    for member in (-1, 9):
        with pytest.raises(ValueError, match="indices of correspondences"):
            solver(points, np.array([[member, *range(size - 1)]], np.int32))

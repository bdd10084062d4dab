"""Sample quality: its definition, and the benefit of choosing promising samples."""

import json
from itertools import combinations

import numpy as np
import pytest
import torch

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg, split_pose
from caransac.kernels import five_point_poses, pack
from caransac.learned.weights_file import weights_path
from caransac.robust.loop.sampling import PoolSampler
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo
from caransac.synthetic import make_pair
from caransac_lab.cli import main
from caransac_lab.datasets import make_synthetic
from caransac_lab.networks.oversampling import SelectiveSampler, estimate_fundamental, estimate_pose, oversample
from caransac_lab.networks.sample_quality import (
    closest_distance_sq,
    extent_across_sq,
    geometric_quality,
    load_quality,
    sample_inputs,
)
from caransac_lab.training.data import make_example
from caransac_lab.training.quality_task import QualityModule, good_samples

pytestmark = pytest.mark.slow


def test_the_parts_of_the_geometric_quality_match_their_definition(rng):
    points = rng.normal(size=(6, 5, 2))
    for sample, closest, across in zip(points, closest_distance_sq(points), extent_across_sq(points), strict=True):
        assert closest == pytest.approx(min(np.sum((a - b) ** 2) for a, b in combinations(sample, 2)))
        assert across == pytest.approx(np.linalg.svd(sample - sample.mean(axis=0))[1][-1] ** 2 / 5)


def test_degenerate_samples_have_no_quality(rng):
    points, other = rng.normal(size=(2, 3, 5, 2))
    points[0, 1] = points[0, 3]
    points[1] = np.linspace(0, 1, 5)[:, None] * [2.0, -1.0] + 3.0
    qualities = geometric_quality(points, other)
    assert np.abs(qualities[:2]).max() < 1e-12 < 1e-6 < qualities[2]
    assert np.allclose(geometric_quality(other, points), qualities)


@pytest.mark.parametrize("size", [5, 7])
def test_the_order_of_the_points_does_not_matter(rng, size):
    x1, x2, order = *rng.normal(size=(2, 40, size, 2)), rng.permutation(size)
    assert np.allclose(geometric_quality(x1, x2), geometric_quality(x1[:, order], x2[:, order]))


def selective(sampler, problem, oversampling, quality=geometric_quality):
    return SelectiveSampler(sampler, problem, quality, oversampling)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_best_of_every_few_samples_is_kept(rng, ordered):
    points1, points2 = rng.normal(size=(2, 200, 2))
    problem = Essential(pack(points1, points2), 1e-3)
    plain = PoolSampler(np.arange(200, dtype=np.int32), 5, 3, ordered)
    candidates = plain.draw(0, 40 * 8).reshape(40, 8, 5)
    kept = selective(plain, problem, 8).draw(0, 40)
    for group, sample in zip(candidates, kept, strict=True):
        best = np.argmax(geometric_quality(points1[group], points2[group]))
        assert np.array_equal(sample, group[best])
    parts = [selective(plain, problem, 8).draw(first, 20) for first in (0, 20)]
    assert np.array_equal(np.concatenate(parts), kept)
    assert np.array_equal(selective(plain, problem, 1).draw(5, 20), plain.draw(5, 20))


def share_of_good(example, sampler, count=256):
    """Return the share of samples with a pose within ten degrees of the truth."""
    samples = sampler.draw(0, count)
    poses = zip(*five_point_poses(example.rays, samples), strict=True)
    good = {sample for pose, sample in poses if pose_error_deg(*split_pose(pose), example.R, example.t) < 10}
    return len(good) / count


@pytest.mark.parametrize("name", ["geometric", "sample-quality"])
def test_oversampling_raises_the_share_of_good_samples(name):
    before, after = [], []
    for pair in make_synthetic(8):
        example = make_example(pair)
        right = PoolSampler(np.flatnonzero(example.labels).astype(np.int32), 5, 0)
        before.append(share_of_good(example, right))
        after.append(share_of_good(example, selective(right, example.problem, 8, load_quality(name))))
    assert np.all(np.array(after) > before)
    assert 1 - np.mean(after) < 0.7 * (1 - np.mean(before)), "a large part of the bad samples is removed"


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo", "lm-lo-u"])
def test_every_method_accepts_oversampling(method):
    pair = make_pair(300, outlier_ratio=0.5, noise_px=0.3, seed=1)
    cameras, images = (pair.camera1, pair.camera2), (pair.points1, pair.points2)
    errors, matrices = [], []
    for oversampling in (1, 8):
        options = Options(method=method, rounds=1, samples_per_round=8, early_stop=False)
        how = MatchInfo(pair.scores), options, oversample(oversampling)
        pose, fields = estimate_pose(*images, *cameras, *how)
        assert fields["num_hypotheses"] == 8
        errors.append(pose_error_deg(*pose, pair.R, pair.t))
        matrices.append(estimate_fundamental(*images, *how)[0])
    assert max(errors) < 5
    assert errors[0] != errors[1] or not np.array_equal(*matrices), "other samples give other answers"


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
def test_oversampling_by_one_equals_the_public_call(method):
    pair = make_pair(300, outlier_ratio=0.5, seed=1)
    options, info = Options(method=method), MatchInfo(pair.scores)
    scores = {"scores": pair.scores, "score_kind": "ratio", "options": options}
    images, cameras = (pair.points1, pair.points2), (pair.camera1, pair.camera2)
    pose, fields = estimate_pose(*images, *cameras, info, options, oversample(1))
    public = caransac.estimate_relative_pose(*images, *cameras, **scores)
    assert np.array_equal(pose[0], public.R) and np.array_equal(pose[1], public.t)
    assert fields["confidence"] == public.confidence and np.array_equal(fields["inliers"], public.inliers)
    F, _ = estimate_fundamental(*images, info, options, oversample(1))
    assert np.array_equal(F, caransac.estimate_fundamental(*images, **scores).F)


def test_matches_that_are_mostly_copies_are_drawn_by_the_step_too():
    pair = make_pair(100, outlier_ratio=0.3, seed=2)
    rows = np.repeat(np.arange(100), 4)
    sizes = []

    def draw(problem, sampler):
        sizes.append(problem.num_points)
        return sampler

    images = pair.points1[rows], pair.points2[rows]
    pose, _ = estimate_pose(*images, pair.camera1, pair.camera2, MatchInfo(pair.scores[rows]), Options(), draw)
    assert pose is not None and set(sizes) == {100}


def test_unknown_qualities_are_refused():
    with pytest.raises(ValueError, match="sample_quality: the package has no weights 'no such'"):
        load_quality("no such")
    with pytest.raises(ValueError, match="oversampling must be from 1 to a million, not 0"):
        oversample(0)
    with pytest.raises(ValueError, match=r"sample_quality: .* is not a caransac weights file"):
        load_quality(str(weights_path("default")))


@pytest.mark.parametrize("size", [5, 7])
def test_torch_and_numpy_qualities_agree_for_any_order(rng, size):
    torch.manual_seed(0)
    module = QualityModule(4, 24)
    x1, x2, order = *rng.normal(size=(2, 300, size, 2)), rng.permutation(size)
    qualities = module.to_numpy()(x1, x2)
    in_torch = module.log_odds(*map(torch.from_numpy, sample_inputs(x1, x2))).detach().numpy()
    assert np.abs(qualities - in_torch).max() < 1e-5
    assert np.abs(qualities - module.to_numpy()(x1[:, order], x2[:, order])).max() < 1e-5


def test_good_samples_have_a_model_near_the_truth():
    example = make_example(next(make_synthetic(1)))
    sampler = PoolSampler(np.flatnonzero(example.labels).astype(np.int32), 5, 0)
    assert good_samples(example, sampler.draw(0, 256)).mean() == share_of_good(example, sampler)


def test_a_short_training_finds_good_samples(tmp_path):
    """On new pairs, the trained quality finds more good samples than chance, and the estimator accepts it."""
    small = ["--steps=20", "--epoch=20", "--batch=4", "--val-pairs=8", "--width=8", "--learning-rate=1e-2"]
    assert main(["train", "--sample-quality", f"--out={tmp_path}", "--workers=1", *small]) == 0
    weights = tmp_path / "weights.npz"
    figures = json.loads(weights.with_suffix(".json").read_text())["validation"]
    assert figures["kept"] > 1.2 * figures["drawn"]
    pair = make_pair(300, outlier_ratio=0.5, noise_px=0.3, seed=1)
    cameras, images = (pair.camera1, pair.camera2), (pair.points1, pair.points2)
    how = MatchInfo(pair.scores), Options(), oversample(8, str(weights))
    pose, _ = estimate_pose(*images, *cameras, *how)
    assert pose_error_deg(*pose, pair.R, pair.t) < 2
    assert estimate_fundamental(*images, *how)[0] is not None

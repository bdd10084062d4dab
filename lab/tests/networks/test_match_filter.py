"""The match filter: its folded normalisation is exact, it does not depend on the order of matches, and it learns."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from caransac import Options, estimate_relative_pose
from caransac.geometry import pose_error_deg
from caransac.learned.state_network import load_network
from caransac.learned.weights_file import weights_path
from caransac.synthetic import make_pair
from caransac_lab.bench.filters import LearnedFilter, ratio_filter, saved_filter
from caransac_lab.bench.plan import Plan
from caransac_lab.cli import main
from caransac_lab.datasets import Pair, make_synthetic
from caransac_lab.networks.match_filter import NUM_INPUTS, Judgement, filter_inputs, load_filter
from caransac_lab.networks.weights import find_weights
from caransac_lab.training.data import with_filter
from caransac_lab.training.filter_task import FilterModule, balanced_entropy
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.worker import Worker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(3)
    return FilterModule(16)


@pytest.fixture
def pair():
    return next(make_synthetic(1))


def judge(match_filter, pair):
    return match_filter.judge(pair.points1, pair.points2, pair.scores, pair.score_kind)


@pytest.mark.parametrize("width", [8, 32, 128])
@pytest.mark.parametrize("count", [1, 2, 50, 3000])
def test_torch_and_numpy_filters_agree(rng, width, count):
    torch.manual_seed(0)
    module = FilterModule(width)
    inputs = (rng.normal(size=(count, NUM_INPUTS)) + 1).astype(np.float32)
    if count == 2:
        inputs[1] = inputs[0]  # the inputs have no variance
    judgement = module.to_numpy().judge_inputs(inputs)
    log_odds, features = (tensor.detach().numpy() for tensor in module.judge(torch.from_numpy(inputs)))
    assert np.abs(judgement.features - features).max() < 1e-5
    assert np.abs(judgement.log_odds - log_odds).max() < 1e-5
    assert judgement.as_features.shape == (count, module.to_numpy().num_features)
    assert np.allclose(judgement.probabilities, 1 / (1 + np.exp(-log_odds)), atol=1e-5)


@pytest.mark.parametrize("num_features", [1, 16, 128])
def test_the_features_of_the_paper_are_zero_for_matches_that_are_pruned(pair, num_features):
    torch.manual_seed(1)
    match_filter = FilterModule(32, num_features).to_numpy()
    judgement = judge(match_filter, pair)
    side = judgement.as_paper_features(pair.points1, pair.points2)
    assert side.shape == (len(pair.points1), num_features + 1) == (len(side), match_filter.num_features)
    kept = judgement.log_odds >= np.sort(judgement.log_odds)[-int(np.ceil(len(side) / 4))]
    assert np.array_equal(side[kept, :-1], judgement.features[kept]) and not side[~kept, :-1].any()
    assert side[:, -1].min() >= 0 and side[:, -1].max() <= 1.5


def test_the_residual_of_the_paper_is_small_on_right_matches():
    pair = Pair.from_synthetic(make_pair(400, outlier_ratio=0.5, noise_px=0.2, seed=7))
    right = pair.right_matches()
    knowing = Judgement(np.where(right > 0, 4, -4).astype(np.float32), np.zeros((400, 2), np.float32))
    residuals = knowing.as_paper_features(pair.points1, pair.points2)[:, -1]
    assert np.median(residuals[right > 0]) < 0.4 < np.median(residuals[right == 0])
    few = Judgement(np.zeros(3, np.float32), np.zeros((3, 2), np.float32))
    assert np.isfinite(few.as_paper_features(pair.points1[:3], pair.points2[:3])).all()


def test_judgements_do_not_depend_on_the_order_of_matches(rng, module, pair):
    order = rng.permutation(len(pair.points1))
    inputs = filter_inputs(pair.points1, pair.points2, pair.scores, pair.score_kind)
    before, after = (module.to_numpy().judge_inputs(each) for each in (inputs, inputs[order]))
    assert np.abs(before.as_features[order] - after.as_features).max() < 1e-5


def test_the_unit_of_the_points_does_not_matter(module, pair):
    moved = replace(pair, points1=3 * pair.points1 - 50, points2=pair.points2 / 7 + 1e3)
    assert np.abs(judge(module.to_numpy(), pair).log_odds - judge(module.to_numpy(), moved).log_odds).max() < 1e-2


def test_no_matches_get_no_judgement(module):
    none = np.empty((0, 2))
    judgement = module.to_numpy().judge(none, none)
    assert judgement.as_features.shape == (0, module.to_numpy().num_features)


def test_right_and_wrong_matches_weigh_the_same(rng):
    labels = torch.from_numpy((rng.uniform(size=400) < 0.05).astype(np.float32))
    log_odds = torch.from_numpy(rng.normal(size=400).astype(np.float32))
    entropies = torch.nn.functional.softplus(-log_odds), torch.nn.functional.softplus(log_odds)
    expected = 0.5 * (entropies[0][labels > 0].mean() + entropies[1][labels == 0].mean())
    assert balanced_entropy(log_odds, labels).item() == pytest.approx(expected.item(), rel=1e-5)
    assert np.isfinite(balanced_entropy(log_odds, torch.ones(400)).item())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("filter") / "run"
    small = ["--steps=24", "--epoch=24", "--batch=4", "--val-pairs=2", "--width=16", "--learning-rate=1e-2"]
    assert main(["train", "--filter", f"--out={out}", "--workers=1", *small]) == 0
    return out / "weights.npz"


def inlier_share(match_filter, pair):
    return match_filter.apply(pair).right_matches().mean()


def test_a_short_training_raises_the_share_of_right_matches(trained):
    pairs = [replace(pair, scores=None) for pair in make_synthetic(8)]  # with scores, the task would be too easy
    filtered = saved_filter(f"mine={trained}")
    assert filtered.weigh == LearnedFilter(str(trained))
    before = np.array([pair.right_matches().mean() for pair in pairs])
    after = np.array([inlier_share(filtered, pair) for pair in pairs])
    assert np.all(after > before)
    assert np.mean(after) > 1.3 * np.mean(before)
    strict = saved_filter(f"mine={trained}:0.9")
    assert all(len(strict.apply(pair).points1) < len(filtered.apply(pair).points1) for pair in pairs)


def test_the_state_network_reads_the_filter(trained, pair):
    recipe = Recipe(width=8, with_filter=str(trained))
    worker = Worker(recipe)
    match_filter = load_filter(str(trained))
    assert worker.sizes()[0] == 36 + match_filter.num_features
    network = worker.task.make_network(worker.sizes()[0])
    gradients, figures = worker.gradient(network.to_weights(), 0, range(1))
    first = dict(zip(dict(network.named_parameters()), gradients, strict=True))["init.0.weight"]
    assert np.abs(first[36:]).max() > 0
    assert len(figures) == 1
    own = with_filter(replace(pair, features=np.ones((len(pair.points1), 2))), match_filter).features
    assert np.array_equal(own[:, :2], np.ones((len(own), 2)))
    assert np.allclose(own[:, 2:], judge(match_filter, pair).as_features)
    with pytest.raises(ValueError, match="with_filter"):
        Recipe(task="filter", with_filter="filter")


def test_rows_behind_the_filter(trained):
    plan = Plan(
        sources=("synthetic:1",), methods=("mine + LM-LO", "filtered"), filters=(saved_filter(f"mine={trained}"),)
    )
    methods, missing = plan.choose_methods()
    assert "mine + LM-LO" in [method.label for method in methods]
    assert "ContextFilter + LM-LO" in [method.label for method in methods]
    assert "CA-RANSAC with filter features" in [method.label for method in methods]
    assert "CA-RANSAC with filter features" not in missing


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in (tmp_path / "other.npz", weights_path("default")):
        with pytest.raises(ValueError, match=r"filter: .* is not a caransac weights file"):
            load_filter(str(name))
    with pytest.raises(ValueError, match="filter: the package has no weights 'no such filter'"):
        load_filter("no such filter")


def test_the_shipped_filter_keeps_right_matches():
    for pair in make_synthetic(3):
        kept = inlier_share(saved_filter(f"ours={find_weights('filter')}"), pair)
        assert kept > pair.right_matches().mean()
        assert kept > 0.9 * inlier_share(ratio_filter(0.85), pair)


@pytest.mark.parametrize("points", [3.0, {"a": 1}, [[1, 2], [3]]], ids=str)
def test_invalid_points_are_refused_by_name(points):
    good = np.ones((10, 2))
    for name, given in (("points1", (points, good)), ("points2", (good, points))):
        with pytest.raises(ValueError, match=f"{name} must"):
            load_filter().judge(*given)
    with pytest.raises(ValueError, match=r"scores must have shape \(10,\)"):
        load_filter().judge(good, good, np.ones(9), "ratio")


def test_the_package_runs_the_papers_network_with_the_features_of_the_filter():
    """The network reads the lifted score, 128 features, and a residual that is lifted to 16 numbers."""
    weights = find_weights("paper-with-filter")
    network = load_network(weights)
    assert len(network.weights["init.0.weight"]) == 16 + 128 + 16 and network.layout.lifted == 1
    pair = make_pair(800, outlier_ratio=0.7, seed=3)
    judgement = load_filter("filter-128").judge(pair.points1, pair.points2, pair.scores, "ratio")
    call = {"scores": pair.scores, "score_kind": "ratio", "options": Options.paper(weights=weights)}
    views = pair.points1, pair.points2, pair.camera1, pair.camera2
    found = estimate_relative_pose(*views, features=judgement.as_paper_features(*views[:2]), **call)
    assert pose_error_deg(found.R, found.t, pair.R, pair.t) < 1
    with pytest.raises(ValueError, match=r"features must have shape \(N, 129\)"):
        estimate_relative_pose(*views, features=np.zeros((800, 128)), **call)


PROGRAM = """
import hashlib
from caransac.synthetic import make_pair
from caransac_lab.networks.match_filter import load_filter
pair = make_pair(40_000, outlier_ratio=0.5, seed=3)
print(hashlib.sha256(load_filter().judge(pair.points1, pair.points2).as_features.tobytes()).hexdigest())
"""


def test_one_and_two_threads_of_libraries_give_the_same_bits():
    found = set()
    for threads in "12":
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_the_command_line_refuses_a_filter_with_a_filter(tmp_path, capsys):
    assert main(["train", "--filter", "--with-filter", f"--out={tmp_path / 'run'}"]) == 2
    assert "with_filter" in capsys.readouterr().err

"""Training: the networks in torch, the gradients, the data, and a whole small run."""

import csv
import json
import subprocess
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

import caransac
from caransac.cli import main
from caransac.geometry import pose_error_deg
from caransac.kernels import RefineOptions
from caransac.options import Options
from caransac.robust.methods import adapt
from caransac.robust.refinement import LOSS_SCALE_IN_NOISE, belief_weights
from caransac.synthetic import make_pair, random_pair
from caransac.training.calibration import fit_logistic
from caransac.training.checkpoint import read_checkpoint
from caransac.training.data import PairSource, augment, make_example, synthetic_pair, without_geometry
from caransac.training.recipe import Recipe
from caransac.training.replay import pose_error_slope, pose_loss, refinement_step, replay
from caransac.training.state_module import StateModule
from caransac.training.trainer import train
from caransac.training.worker import Worker


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(1)
    return StateModule(36, 16)


@pytest.fixture
def example(rng):
    while True:
        pair = synthetic_pair(rng)
        if len(pair.points1) < 1500 and pair.right_matches().mean() > 0.3:
            return make_example(pair)


@pytest.mark.parametrize("width", [8, 16, 32, 128])
def test_torch_and_numpy_networks_agree(rng, width):
    torch.manual_seed(0)
    module = StateModule(36, width)
    ours = module.to_numpy()
    side = rng.normal(size=(300, 36)).astype(np.float32)
    scores = (rng.uniform(size=(4, 300)) * (rng.uniform(size=(4, 300)) < 0.4)).astype(np.float32)
    state, in_torch = ours.init_state(side), module.init_state(torch.from_numpy(side))
    for _ in range(4):
        assert np.abs(state - in_torch.detach().numpy()).max() < 1e-5
        probabilities = torch.sigmoid(module.log_odds(in_torch)).detach().numpy()
        assert np.abs(ours.decode(state) - probabilities).max() < 1e-5
        state, in_torch = ours.update(state, scores), module.next_state(in_torch, torch.from_numpy(scores))


def test_weights_survive_the_round_trip(network):
    other = StateModule(36, 16)
    other.load_weights(network.to_weights())
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), other.parameters(), strict=True))
    with pytest.raises(ValueError, match="another shape"):
        StateModule(36, 8).load_weights(network.to_weights())


def run(network, example):
    return adapt(example.problem, network.to_numpy(), example.side, Options(early_stop=False))


def test_the_replayed_step_is_that_of_the_refinement(network, example):
    """One Levenberg-Marquardt step of the kernel, from a little beside the optimum, is the step torch takes."""
    found = run(network, example)
    record, prior, problem = found.rounds[-1], found.rounds[0].probabilities, example.problem
    model = problem.retract(found.model, 1e-4 * np.array([1, -2, 1, 3, -1]))
    weights = belief_weights(network.to_numpy(), record.probabilities, prior)
    scale = LOSS_SCALE_IN_NOISE * record.noise * problem.max_error
    (stepped,) = problem.refine(model[None], RefineOptions(loss_scale=scale, max_steps=1), weights)
    step = refinement_step(network, example, model, prior, record).detach().numpy()
    assert np.abs(problem.retract(model, step) - stepped).max() < 0.05 * np.abs(stepped - model).max()


def test_the_pose_loss_moves_the_exponents_alone(network, example):
    found = run(network, example)
    network.zero_grad()
    record = found.rounds[-1]
    pose_loss(network, example, found.rounds[0], record).backward()
    assert network.alpha.grad is not None
    assert network.alpha.grad != 0 or example.pose_error_deg(record.best) > 30
    assert all(p.grad is None for name, p in network.named_parameters() if name not in ("alpha", "beta"))


def test_the_slope_of_the_pose_error(network, example):
    found = run(network, example)
    slope = pose_error_slope(example, found.model, 5)
    delta = 1e-4 * slope / np.linalg.norm(slope)
    rise = example.pose_error_deg(example.problem.retract(found.model, delta)) - example.pose_error_deg(found.model)
    assert rise == pytest.approx(slope @ delta, rel=0.05)


def test_replay_gives_gradients_to_every_network_and_its_loss_is_that_of_the_loop(network, example):
    network.zero_grad()
    losses = replay(network, example, seed=3)
    losses.total.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())
    found = adapt(example.problem, network.to_numpy(), example.side, Options(early_stop=False, seed=3))
    p, y = found.probabilities.astype(float), example.labels
    assert losses.posterior == pytest.approx(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)), abs=1e-4)
    assert losses.pose_error_deg == pytest.approx(example.pose_error_deg(found.model))


def test_self_supervision_needs_no_truth(network, example):
    blind = replace(example, R=None, t=None, labels=np.zeros_like(example.labels))
    assert np.isfinite(replay(network, blind, seed=0, self_supervised=True).total.item())


def test_augmented_pairs_keep_their_truth(rng):
    for _ in range(20):
        pair = synthetic_pair(rng)
        if (before := pair.right_matches()).sum() < 50:
            continue
        augmented = augment(pair, rng)
        after = augmented.right_matches()
        if len(after) == len(before):
            assert np.mean(after == before) > 0.99
        else:
            assert after.mean() == pytest.approx(before.mean(), abs=4 * np.sqrt(0.25 / len(after)))


def test_the_source_draws_by_the_generator_alone(rng):
    source = PairSource([synthetic_pair(rng) for _ in range(5)], synthetic_share=0.5)
    first, second = (source.draw(np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first.points1, second.points1)


def test_points_matched_at_random_have_no_truth(rng):
    pair = without_geometry(synthetic_pair(rng), rng)
    assert pair.R is None
    assert pair.right_matches().sum() == 0


def test_logistic_regression_finds_the_log_odds(rng):
    x = rng.normal(size=(20000, 3)) * [1, 10, 0.1]
    weights, bias = np.array([1.0, -0.1, 5.0]), -0.5
    y = rng.uniform(size=20000) < 1 / (1 + np.exp(-(x @ weights + bias)))
    found, offset = fit_logistic(x, y)
    assert np.allclose(found, weights, rtol=0.15)
    assert offset == pytest.approx(bias, abs=0.1)
    separable = fit_logistic(x, x[:, 0] > 0)
    assert np.isfinite(separable[0]).all()


@pytest.fixture
def scenes(tmp_path, rng):
    """A folder of one scene of four pairs with three features per match."""
    pairs = {f"a{i}-b{i}": random_pair(rng, num_points=200, inlier_ratio=0.5) for i in range(4)}
    tables = {
        "matches": {key: np.c_[pair.points1, pair.points2] for key, pair in pairs.items()},
        "match_conf": {key: pair.scores for key, pair in pairs.items()},
        "match_features": {key: rng.normal(size=(200, 3)) for key in pairs},
        "K1_K2": {key: np.stack([pair.camera1.K, pair.camera2.K])[None] for key, pair in pairs.items()},
        "R": {f"a{i}": np.eye(3) for i in range(4)} | {f"b{i}": p.R for i, p in enumerate(pairs.values())},
        "T": {f"a{i}": np.zeros((3, 1)) for i in range(4)}
        | {f"b{i}": p.t[:, None] for i, p in enumerate(pairs.values())},
    }
    folder = tmp_path / "mine" / "train" / "scene"
    folder.mkdir(parents=True)
    for name, table in tables.items():
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for key, value in table.items():
                file[key] = value
    return folder.parent


def test_real_pairs_with_features_of_their_own(scenes):
    with pytest.raises(ValueError, match="synthetic_share"):
        Worker(Recipe(data=(str(scenes),), width=8)).sizes()
    worker = Worker(Recipe(data=(str(scenes),), width=8, synthetic_share=0.0))
    assert worker.sizes() == (39, 1)
    assert worker.source.pairs[0].scene == "mine/train/scene"
    network = StateModule(39, 8)
    gradients, figures = worker.gradient(network.to_weights(), 0, range(2))
    first = dict(zip(dict(network.named_parameters()), gradients, strict=True))["init.0.weight"]
    assert first.shape == (39, 8)
    assert np.abs(first[36:]).max() > 0
    assert len(figures) == 2
    numbers, right = worker.evidence(network.to_weights(), "essential", 1)
    assert np.isfinite(numbers).all()
    assert right in (True, False)
    (scenes / "scene" / "match_features.h5").unlink()
    assert Worker(Recipe(data=(str(scenes),), width=8)).sizes() == (36, 1)


def test_data_that_are_not_finite_are_refused(scenes):
    with h5py.File(scenes / "scene" / "matches.h5", "r+") as file:
        file["a2-b2"][7, 1] = np.nan
    with pytest.raises(ValueError, match=r"scene/matches\.h5: pair a2-b2: points1 must not contain NaN"):
        Worker(Recipe(data=(str(scenes),), width=8, synthetic_share=0.0))


SMALL = {"width": 8, "batch": 4, "epoch": 12, "val_pairs": 5, "learning_rate": 5e-3}


def test_a_small_run_learns_resumes_and_exports(tmp_path):
    recipe = Recipe(**SMALL)
    seen = []
    torch.manual_seed(7)
    state = torch.get_rng_state()
    whole = train(recipe, tmp_path / "whole", steps=24, workers=2, evidence_runs=12, progress=lambda *r: seen.append(r))
    assert torch.equal(torch.get_rng_state(), state), "the caller's random numbers go on as if nothing had been drawn"
    assert {stage for stage, *_ in seen} == {"training", "confidence"}
    with (tmp_path / "whole" / "log.csv").open() as file:
        log = list(csv.DictReader(file))
    assert [row["step"] for row in log] == ["12", "24"]
    assert float(log[1]["val_loss"]) < 0.8 * start_loss(recipe)
    # stopped half-way, and continued by another number of workers: the same weights to the last bit
    train(recipe, tmp_path / "halves", steps=14, workers=1, evidence_runs=6)
    with pytest.raises(ValueError, match="holds a training run"):
        train(recipe, tmp_path / "halves", steps=24)
    with pytest.raises(ValueError, match="another width"):
        train(replace(recipe, width=16), tmp_path / "halves", steps=24, resume=True)
    halves = train(recipe, tmp_path / "halves", steps=24, workers=1, resume=True, evidence_runs=6)
    checkpoints = [read_checkpoint(path.parent / "checkpoint.pt") for path in (whole, halves)]
    assert all(torch.equal(value, checkpoints[1]["network"][name]) for name, value in checkpoints[0]["network"].items())

    card = json.loads(whole.with_suffix(".json").read_text())
    assert card["steps"] == 24
    assert card["recipe"]["width"] == 8
    assert whole.with_name("curves.png").stat().st_size > 1000
    pair = make_pair(seed=2)
    result = caransac.estimate_relative_pose(
        pair.points1,
        pair.points2,
        pair.camera1,
        pair.camera2,
        scores=pair.scores,
        score_kind="ratio",
        options=caransac.Options(weights=str(whole)),
    )
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 2
    assert 0 <= result.confidence <= 1


def start_loss(recipe):
    """Validation loss of the untrained network."""
    worker = Worker(recipe)
    torch.manual_seed(recipe.seed)
    weights = StateModule(36, recipe.width).to_weights()
    return np.mean([worker.validate(weights, index)["loss"] for index in range(len(worker.val_pairs))])


def test_training_may_start_from_weights_that_know_fewer_features():
    torch.manual_seed(3)
    small, large = StateModule(36, 8), StateModule(40, 8)
    large.start_from(small.to_weights())
    side = torch.randn(5, 40)
    assert torch.allclose(large.init_state(side), small.init_state(side[:, :36]))
    with pytest.raises(ValueError, match="another shape"):
        small.start_from(large.to_weights())


def test_the_command_line_trains_and_refuses(tmp_path, capsys):
    small = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    out = tmp_path / "run"
    arguments = ["train", f"--out={out}", "--steps=2", "--workers=1", "--evidence-runs=4", *small]
    assert main(arguments) == 0
    assert str(out / "weights.npz") in capsys.readouterr().out.replace("\n", "")
    assert main(arguments) == 2
    assert "holds a training run" in capsys.readouterr().err
    assert main([*arguments, "--resume", "--data", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "other"), "--width", "7"]) == 2
    assert "width" in capsys.readouterr().err
    for option in ("steps", "workers", "evidence-runs"):
        assert main(["train", "--out", str(tmp_path / "other"), f"--{option}", "0"]) == 2
        assert f"{option.replace('-', '_')} must be at least 1" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "other"), "--seed", "-1"]) == 2
    assert "seed must not be negative" in capsys.readouterr().err
    assert main(["train", "--out", str(out / "weights.npz")]) == 2
    assert "cannot be made a folder (it is a file)" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    for content in (b"", b"garbage", (out / "checkpoint.pt").read_bytes()[:1000]):
        (out / "checkpoint.pt").write_bytes(content)
        assert main([*arguments, "--resume"]) == 2
        assert "checkpoint.pt is not a checkpoint" in capsys.readouterr().err


def test_estimating_never_imports_torch():
    program = (
        "import sys, caransac; from caransac.synthetic import make_pair; p = make_pair(); "
        "scored = {'scores': p.scores, 'score_kind': 'ratio'}; "
        "r = caransac.estimate_relative_pose(p.points1, p.points2, p.camera1, p.camera2, **scored); "
        "assert r.success; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""Complete small training runs."""

import csv
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

import caransac
from caransac._support.interrupts import InterruptRequest
from caransac.geometry import pose_error_deg
from caransac.learned.weights_file import weights_path
from caransac.synthetic import make_pair
from caransac_lab.cli import main
from caransac_lab.training.checkpoint import read_checkpoint
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.state_module import StateModule
from caransac_lab.training.trainer import Training, train
from caransac_lab.training.worker import Worker

pytestmark = pytest.mark.slow

SMALL = {"width": 8, "batch": 4, "epoch": 12, "val_pairs": 5, "learning_rate": 5e-3}


class OwnThread(ThreadPoolExecutor):
    """A thread instead of worker processes, whose start takes longer than a small run."""

    def __init__(self, _, start, *arguments):
        super().__init__(1, initializer=start, initargs=arguments)


@pytest.fixture
def no_processes(monkeypatch):
    monkeypatch.setattr("caransac_lab.training.trainer.ProcessPool", OwnThread)


def test_a_small_run_learns_resumes_and_exports(tmp_path, monkeypatch):
    recipe = Recipe(**SMALL)
    seen = []
    torch.manual_seed(7)
    state = torch.get_rng_state()
    whole = train(recipe, tmp_path / "whole", steps=24, workers=2, evidence_runs=12, progress=lambda *r: seen.append(r))
    assert torch.equal(torch.get_rng_state(), state), "the caller's random numbers are not affected"
    assert {stage for stage, *_ in seen} == {"training", "confidence"}
    with (tmp_path / "whole" / "log.csv").open() as file:
        log = list(csv.DictReader(file))
    assert [row["step"] for row in log] == ["12", "24"]
    assert float(log[1]["val_loss"]) < 0.8 * start_loss(recipe)
    # A run that is stopped halfway and resumed with another number of workers gives identical weights.
    monkeypatch.setattr("caransac_lab.training.trainer.ProcessPool", OwnThread)
    train(recipe, tmp_path / "halves", steps=14, workers=1, evidence_runs=6)
    with pytest.raises(ValueError, match="contains a training run"):
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


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The recipe and the weights of a run of six steps."""
    recipe = Recipe(**SMALL | {"epoch": 3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("caransac_lab.training.trainer.ProcessPool", OwnThread)
        return recipe, train(recipe, tmp_path_factory.mktemp("whole"), steps=6, evidence_runs=6)


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize("after", ["gradient", "validate"])
def test_a_request_to_stop_leaves_a_checkpoint_and_does_not_change_the_result(
    tmp_path, monkeypatch, uninterrupted, after
):
    """The request comes during a step, or during the validation after a step."""
    recipe, whole = uninterrupted
    calls, method = [], Training._map

    def interrupted(self, name, arguments):
        calls.append(name)
        if name == after and calls.count("gradient") >= 3:
            raise InterruptRequest
        return method(self, name, arguments)

    with monkeypatch.context() as patch, pytest.raises(InterruptRequest):
        patch.setattr(Training, "_map", interrupted)
        train(recipe, tmp_path / "cut", steps=6, evidence_runs=6)
    step = read_checkpoint(tmp_path / "cut" / "checkpoint.pt")["state"]["step"]
    assert step == (2 if after == "gradient" else 3)
    cut = train(recipe, tmp_path / "cut", steps=6, resume=True, evidence_runs=6)
    logs = [(path.parent / "log.csv").read_text().splitlines() for path in (whole, cut)]
    losses = [[(row["step"], row["val_loss"]) for row in csv.DictReader(log)] for log in logs]
    assert losses[0] == losses[1] and [step for step, _ in losses[0]] == ["3", "6"]
    with np.load(whole) as one, np.load(cut) as other:
        assert all(np.array_equal(one[name], other[name]) for name in one)


def start_loss(recipe):
    """Return the validation loss of the untrained network."""
    worker = Worker(recipe)
    torch.manual_seed(recipe.seed)
    weights = StateModule(36, recipe.width).to_weights()
    return np.mean([worker.validate(weights, index)["loss"] for index in range(len(worker.val_pairs))])


@pytest.mark.usefixtures("no_processes")
def test_the_command_line_trains_and_refuses(tmp_path, capsys):
    small = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    out = tmp_path / "run"
    arguments = ["train", f"--out={out}", "--steps=2", "--workers=1", "--evidence-runs=4", *small]
    assert main(arguments) == 0
    assert str(out / "weights.npz") in capsys.readouterr().out.replace("\n", "")
    assert main(arguments) == 2
    assert "contains a training run" in capsys.readouterr().err
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


def test_weights_that_a_run_starts_from_are_not_replaced(tmp_path):
    path = shutil.copyfile(weights_path("default"), tmp_path / "weights.npz")
    for recipe in (Recipe(start=str(path)), Recipe(with_filter=str(path))):
        with pytest.raises(ValueError, match=r"out: .*weights\.npz is an input; choose another place"):
            train(recipe, tmp_path, steps=1)


def test_estimating_never_imports_torch():
    program = (
        "import sys, caransac; from caransac.synthetic import make_pair; p = make_pair(); "
        "scored = {'scores': p.scores, 'score_kind': 'ratio'}; "
        "r = caransac.estimate_relative_pose(p.points1, p.points2, p.camera1, p.camera2, **scored); "
        "assert r.success; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

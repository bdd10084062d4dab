"""Checkpoints: no code in them is run, and refusals give the reason."""

import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from bombs import little_memory

from caransac_lab.cli import main
from caransac_lab.training import worker
from caransac_lab.training.checkpoint import PARTS, read_checkpoint, write_checkpoint
from caransac_lab.training.recipe import Recipe
from caransac_lab.training.trainer import Training

pytestmark = pytest.mark.slow


class Malicious:
    """An object whose pickle calls a function when it is read; the function creates a file."""

    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return Path.touch, (self.victim,)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.pt"


@pytest.mark.parametrize("write", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
def test_a_malicious_file_is_refused_and_runs_nothing(path, tmp_path, write):
    victim = tmp_path / "victim"
    write({part: {} for part in PARTS} | {"state": {"step": Malicious(victim)}}, path)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is .* choose another folder"):
        read_checkpoint(path)
    assert not victim.exists()
    torch.load(path, weights_only=False) if write is torch.save else pickle.loads(path.read_bytes())
    assert victim.exists(), "without the check, reading runs its code"


def test_the_command_line_refuses_it_too(path, tmp_path, capsys):
    torch.save({"state": Malicious(tmp_path / "victim")}, path)
    assert main(["train", f"--out={tmp_path}", "--resume", "--workers=1", "--val-pairs=1"]) == 2
    assert "checkpoint.pt is of another version of caransac, or not of caransac at all" in capsys.readouterr().err
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    "parts",
    [
        {"recipe": {"subject": "state"}, "course": {"best_weights": {"alpha": np.ones(1)}}},  # from the first version
        {"recipe": {"subject": "state"}, "state": {}},
        {"recipe": {}},
    ],
)
def test_a_checkpoint_of_another_version_is_reported(path, parts):
    torch.save({"network": {}, "optimiser": {}, "schedule": {}, **parts}, path)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is of another version .*: resume it with the version that"):
        read_checkpoint(path)


def test_other_files_are_refused(path):
    torch.save({"weights": torch.zeros(300)}, path)
    whole = path.read_bytes()
    for content in (b"", b"garbage", whole[:500], whole[:-50], whole[:300] + bytes(100) + whole[400:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"checkpoint\.pt is .* choose another folder"):
            read_checkpoint(path)


def test_unreadable_checkpoints_are_not_written(path):
    with pytest.raises(pickle.UnpicklingError):
        write_checkpoint(path, {"state": {"best_weights": np.zeros(3)}})
    assert not path.exists()


@pytest.fixture(scope="module")
def make_training():
    """Return a function that creates a small training run in a folder, with a thread as worker."""
    recipe = Recipe(width=8, batch=2, epoch=1, val_pairs=2)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(worker.start, recipe).result()
        yield lambda folder: Training(recipe, folder, pool)
    worker.start(Recipe())


@pytest.fixture(scope="module")
def checkpoint(make_training, tmp_path_factory):
    """The checkpoint of a run of one step."""
    training = make_training(tmp_path_factory.mktemp("run"))
    training.run(1, lambda *_: None)
    return training.out / "checkpoint.pt"


def forget(name):
    return lambda parts: parts["state"].pop(name)


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts["network"].pop("alpha"),
        lambda parts: parts["network"].update(alpha=torch.zeros(7)),
        lambda parts: parts["network"].update(alpha=torch.tensor(float("nan"))),
        lambda parts: parts["optimiser"].clear(),
        lambda parts: parts["optimiser"].update(param_groups=[]),
        lambda parts: parts["state"].update(step=-3),
        lambda parts: parts["state"].update(step="many"),
        lambda parts: parts["state"].update(log=[{}]),
        lambda parts: parts["state"].update(log=[{"step": "a"}], best_weights={}),
        lambda parts: parts["state"]["best_weights"].popitem(),
        lambda parts: parts["state"]["best_weights"].update(alpha=torch.zeros(1).expand(10**12)),
        forget("best_weights"),
        forget("step"),
    ],
)
def test_an_impossible_run_is_refused_in_one_line(path, tmp_path, make_training, checkpoint, change):
    training, parts = make_training(tmp_path), torch.load(checkpoint, weights_only=True)
    torch.save(parts, path)
    training.restore()
    assert training.state.step == 1
    change(parts)
    torch.save(parts, path)
    with pytest.raises(
        ValueError, match=r"checkpoint\.pt does not contain a run of caransac: choose another folder \(.*\)$"
    ):
        training.restore()


def test_a_checkpoint_that_becomes_vast_is_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(2**28))
    with little_memory(), pytest.raises(ValueError, match=r"checkpoint\.pt is not a checkpoint.*would take 0\.27 GB"):
        read_checkpoint(path)

"""Checkpoints: what is refused, and with what words."""

import pytest
import torch

from caransac.training.checkpoint import read_checkpoint, write_checkpoint


def test_a_run_of_another_version_says_so(tmp_path):
    """In the first version a recipe had a subject, and what is now the state of a run had another name."""
    others = ({"recipe": {"subject": "state"}, "course": {}}, {"recipe": {"subject": "state"}, "state": {}})
    for parts in others:
        write_checkpoint(tmp_path / "checkpoint.pt", {"network": {}, "optimiser": {}, "schedule": {}, **parts})
        with pytest.raises(ValueError, match=r"checkpoint\.pt is of another version of caransac.* another folder"):
            read_checkpoint(tmp_path / "checkpoint.pt")


def test_other_files_are_no_checkpoints(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"weights": torch.zeros(300)}, path)
    for content in (b"", b"garbage", path.read_bytes()[:500]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"checkpoint\.pt is not a checkpoint"):
            read_checkpoint(path)

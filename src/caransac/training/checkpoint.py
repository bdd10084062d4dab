"""Checkpoints of a training run: files that a later call continues from."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from caransac._support.files import replacing
from caransac.training.recipe import Recipe

PARTS = {"recipe", "network", "optimiser", "schedule", "state"}


def write_checkpoint(path: Path, parts: dict[str, Any]) -> None:
    """Write the `PARTS` of a run, each as a dict."""
    with replacing(path) as temporary:
        torch.save(parts, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The `PARTS` of a run, as `write_checkpoint` got them.

    Raises:
        ValueError: the file is no checkpoint, or one of another version; the message names it and says what to do.
    """
    try:
        parts: dict[str, Any] = torch.load(path, weights_only=False)
    except (EOFError, OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} is not a checkpoint, or it is corrupt: choose another folder ({error})") from error
    if set(parts) != PARTS or set(parts["recipe"]) != {field.name for field in fields(Recipe)}:
        raise ValueError(
            f"{path} is of another version of caransac, which this one cannot continue: resume it with that version, "
            "or choose another folder"
        )
    return parts

"""Checkpoints of a training run: files that a later call continues from.

They hold only tensors and plain values and are read as such, so that a file from anywhere can be tried: torch's other
way of reading would run whatever code a file names.
"""

from __future__ import annotations

import zipfile
from dataclasses import fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from caransac._support.files import replacing
from caransac._support.untrusted import check_size
from caransac_lab.training.recipe import Recipe

PARTS = {"recipe", "network", "optimiser", "schedule", "state"}


def write_checkpoint(path: Path, parts: dict[str, Any]) -> None:
    """Write the `PARTS` of a run, each a dict of tensors and plain values."""
    with replacing(path) as temporary:
        torch.save(parts, temporary)
        torch.load(temporary, weights_only=True)  # raises now what would make resuming impossible


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The `PARTS` of a run, as `write_checkpoint` got them.

    Raises:
        ValueError: the file is no checkpoint, or one of another version; the message names it and says what to do.
    """
    other_version = (
        f"{path} is of another version of caransac, or not of caransac at all: resume it with the version that wrote "
        "it, or choose another folder"
    )
    try:
        with zipfile.ZipFile(path) as archive:  # as what torch unpacks it, whole
            check_size(sum(entry.file_size for entry in archive.infolist()), path.stat().st_size, str(path))
        parts: dict[str, Any] = torch.load(path, weights_only=True)
    except Exception as error:  # a damaged file may raise anything
        if isinstance(error, UnpicklingError) and zipfile.is_zipfile(path):  # whole, but with more than plain values
            raise ValueError(other_version) from error
        raise ValueError(f"{path} is not a checkpoint, or it is corrupt: choose another folder ({error})") from error
    known = isinstance(parts, dict) and set(parts) == PARTS and all(isinstance(part, dict) for part in parts.values())
    if not known or set(parts["recipe"]) != {field.name for field in fields(Recipe)}:
        raise ValueError(other_version)
    return parts

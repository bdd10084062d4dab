"""Checkpoints of a training run, from which a later call resumes.

They contain only tensors and plain values and are read as such, so a file from any source is safe to try. torch's other
way of reading would run any code that a file names.
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
        torch.load(temporary, weights_only=True)  # raises now if resuming would be impossible


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the `PARTS` of a run, as passed to `write_checkpoint`.

    Raises:
        ValueError: the file is not a checkpoint of this version. The message names it and says what to do.
    """
    other_version = (
        f"{path} is of another version of caransac, or not of caransac at all: resume it with the version that wrote "
        "it, or choose another folder"
    )
    try:
        with zipfile.ZipFile(path) as archive:  # torch unpacks the whole archive
            check_size(sum(entry.file_size for entry in archive.infolist()), path.stat().st_size, str(path))
        parts: dict[str, Any] = torch.load(path, weights_only=True)
    except Exception as error:  # a damaged file may raise anything
        # The file is complete, but contains more than plain values.
        if isinstance(error, UnpicklingError) and zipfile.is_zipfile(path):
            raise ValueError(other_version) from error
        raise ValueError(f"{path} is not a checkpoint, or it is corrupt: choose another folder ({error})") from error
    known = isinstance(parts, dict) and set(parts) == PARTS and all(isinstance(part, dict) for part in parts.values())
    if not known or set(parts["recipe"]) != {field.name for field in fields(Recipe)}:
        raise ValueError(other_version)
    return parts

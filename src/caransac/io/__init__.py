"""Compute correspondences from photographs, and read and write their files."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("adapters", "descriptors", "images", "matches", "point_files"):  # these submodules load on first use
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

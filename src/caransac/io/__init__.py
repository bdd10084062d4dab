"""Photographs to correspondences, and the files of both."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("adapters", "descriptors", "images", "matches", "point_files"):  # which need no import of their own
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

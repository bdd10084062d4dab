"""What lets a part of a project be imported where the rest of it, or of what it imports, is not there."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock


def stand_in(*names: str) -> None:
    """Let modules that are not needed for an estimate be imported."""
    for name in names:
        try:
            import_module(name)
        except ImportError:
            sys.modules[name] = MagicMock()


def open_package(name: str, folder: Path, **members: object) -> ModuleType:
    """A package without what its own first file would import."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    vars(module).update(members)
    sys.modules[name] = module
    return module

"""Stand-ins that make a part of a project importable if its other parts or dependencies are missing."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock


def stand_in(*names: str) -> None:
    """Create empty modules for imports that an estimate does not use."""
    for name in names:
        try:
            import_module(name)
        except ImportError:
            sys.modules[name] = MagicMock()


def open_package(name: str, folder: Path, **members: object) -> ModuleType:
    """Create a package without the imports of its own __init__ file."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    vars(module).update(members)
    sys.modules[name] = module
    return module

"""Studies: one module for each published result. All have the same functions.

- The docstring states what is measured; `add_arguments` (optional) adds options to the parser.
- ``study(arguments)`` measures and returns the content of the result file. ``arguments.study`` is the name of the
  study, ``arguments.out`` the path of the file or None, and ``arguments.quick`` requests little data. A study raises
  `LeftOutError` if it cannot run here. An entry `FAILED` lists errors.
- ``as_markdown(content)`` formats the tables.
"""

from importlib import import_module
from typing import Any

# Modules with several studies; every other study has a module of its own name.
MODULES = dict.fromkeys(("peers", "unscored", "tuned", "paper"), "peers")
MODULES |= dict.fromkeys(("calibration", "robustness"), "weights")


def load_study(name: str) -> Any:
    """Import the module of a study."""
    return import_module(f"{__name__}.{MODULES.get(name, name)}")

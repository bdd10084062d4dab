"""Studies: one module for each published result, all with the same few names.

- The docstring says what is measured; `add_arguments` (optional) adds options to the parser.
- ``study(arguments)`` measures, and returns the content of the result file. ``arguments.study`` is the name of the
  study, ``arguments.out`` the path of the file or None, ``arguments.quick`` asks for little data. A study raises
  `LeftOutError` if it cannot run here; an entry `FAILED` lists what went wrong.
- ``as_markdown(content)`` makes the tables.
"""

from importlib import import_module
from typing import Any

# Studies whose module has several; all others have the module of their name.
MODULES = dict.fromkeys(("peers", "tuned", "paper"), "peers")
MODULES |= dict.fromkeys(("calibration", "robustness"), "weights")


def load_study(name: str) -> Any:
    """The module of a study."""
    return import_module(f"{__name__}.{MODULES.get(name, name)}")

"""The libraries that drop-ins stand in for: every name that a drop-in does not define is the original's."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

SPECIAL = ("__all__", "__version__")  # the others, __path__ for one, say what the module itself is


def original_attribute(library: str, name: str, package: str) -> Any:
    """An attribute of a library, for a module's ``__getattr__``.

    Args:
        library: name of the module to import.
        name: of the attribute.
        package: what to install to have it.

    Raises:
        AttributeError: the library does not have it, or is not installed.
    """
    if name.startswith("__") and name not in SPECIAL:
        raise AttributeError(name)
    try:
        original = import_module(library)
    except ImportError as error:
        raise AttributeError(
            f"{name!r} is not among what caransac answers, and {library}, which may have it, is not installed: "
            f"pip install {package}"
        ) from error
    return getattr(original, name)


def all_names(library: str, own: Mapping[str, object]) -> list[str]:
    """Names of a module and of the library it stands in for, for a module's ``__dir__``."""
    try:
        return sorted({*own, *dir(import_module(library))})
    except ImportError:
        return sorted(own)

"""Access to the libraries that the drop-ins replace: all names that a drop-in lacks come from the original."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

SPECIAL = ("__all__", "__version__")  # other special names, such as __path__, belong to the drop-in itself


def original_attribute(library: str, name: str, package: str) -> Any:
    """Return an attribute of a library, for the ``__getattr__`` of a module.

    Args:
        library: name of the module to import.
        name: name of the attribute.
        package: name of the package to install.

    Raises:
        AttributeError: the library does not have it, or is not installed.
    """
    if name.startswith("__") and name not in SPECIAL:
        raise AttributeError(name)
    try:
        original = import_module(library)
    except ImportError as error:
        raise AttributeError(
            f"caransac does not replace {name!r}, and {library}, which may have it, is not installed: "
            f"pip install {package}"
        ) from error
    return getattr(original, name)


def all_names(library: str, own: Mapping[str, object]) -> list[str]:
    """Return the names of a module and of the library that it replaces, for the ``__dir__`` of the module."""
    try:
        return sorted({*own, *dir(import_module(library))})
    except ImportError:
        return sorted(own)

"""Robust geometry: relative and absolute pose, fundamental matrix and homography from matches with many outliers.

Conventions: points are (N, 2) pixels, ``x2 = R x1 + t`` with ``|t| = 1``, ``x2^T F x1 = 0``, ``x2 ~ H x1``,
``x = R X + t`` for 3D points X; arguments come in the order points1, points2, camera1, camera2.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, but importing typing takes a while
if TYPE_CHECKING:
    from typing import Any

    from caransac._public import *  # noqa: F403  # type checkers see what is loaded on demand

__version__ = "0.3.0"

# Modules of 0.2 that are in the lab now; the message about them is removed in 0.4.
_IN_LAB = ("bench", "datasets", "filter", "metrics", "render", "training")


def __getattr__(name: str) -> Any:
    if name in _IN_LAB:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it is in caransac-lab now")
    if not name.startswith("__"):
        try:  # modules such as caransac.geometry need no import statement
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise  # the module exists, but something that it imports does not
    # Names are loaded when first used, because importing numpy takes a while: the command line reacts to Ctrl-C before
    # that.
    if not name.startswith("_") or name == "__all__":
        if name in (api := import_module("caransac.api")).__all__:  # most callers need only the api
            return globals().setdefault(name, getattr(api, name))  # not searched for again
        public = {key: value for key, value in vars(import_module("caransac._public")).items() if key[0] != "_"}
        globals().update(public, __all__=["__version__", *sorted(public)])
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_suggest(name)}")


def _suggest(name: str) -> str:
    """Return the end of the message about an unknown name: the likely intended name, if there is one."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    others = {"essential": "estimate_relative_pose", "pnp": "estimate_absolute_pose"}
    near = [call for word, call in others.items() if word in name.lower()]
    near = near or get_close_matches(name, __getattr__("__all__"), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})

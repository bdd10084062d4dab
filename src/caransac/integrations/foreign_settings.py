"""Conversion of the settings of other libraries to options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import index
from typing import Any

from caransac._support.arrays import is_integer, shorten
from caransac.options import Options, in_rounds, refuse_unknown

Meanings = Mapping[str, Callable[[Any], dict[str, Any]]]  # name of a setting -> function from its value to options

THEIR_LIMIT = 100_000  # default maximum number of hypotheses of PoseLib and COLMAP
MOST_HYPOTHESES = 1_000_000  # takes a few seconds; in other libraries, larger limits often mean no limit


def means(option: str) -> Callable[[Any], dict[str, Any]]:
    """Return the meaning of a setting that is an option with another name."""
    return lambda value: {option: value}


def mean_nothing(names: str) -> Meanings:
    """Return the meanings of settings, separated by spaces, that can be ignored: our method works differently."""
    return dict.fromkeys(names.split(), lambda _: {})


def must_be(only: object) -> Callable[[Any], dict[str, Any]]:
    """Return the meaning of a setting that is not supported: any other value than `only` raises."""

    def check(value: object) -> dict[str, Any]:
        if value != only:
            raise ValueError(f"only {only!r} is supported, not {value!r}")
        return {}

    return check


def at_most(hypotheses: int) -> dict[str, Any]:
    """Return a maximum number of hypotheses as options.

    If it is the default of the other library, our default is used, which is far lower and sufficient.
    """
    return {} if index(hypotheses) == THEIR_LIMIT else limited_to(hypotheses)


def limited_to(hypotheses: int) -> dict[str, Any]:
    """Return a maximum number of hypotheses as options. Larger numbers than `MOST_HYPOTHESES` are reduced to it."""
    return in_rounds(min(hypotheses, MOST_HYPOTHESES))


def at_least(hypotheses: int) -> dict[str, Any]:
    """Check and ignore a minimum number of hypotheses: our early stop depends only on the result.

    `translate_limited` handles a minimum that is equal to the maximum.
    """
    index(hypotheses)  # raises if it is not a whole number
    return {}


def is_on(value: object, name: str) -> bool:
    """Return True if a setting is on. Raise a ValueError that names it if it has no truth value."""
    try:
        return bool(value)
    except (TypeError, ValueError) as error:  # arrays
        raise ValueError(f"{name} must be True or False, not {shorten(value)}") from error


def drop_default(asked: dict[str, Any], name: str, default: int) -> None:
    """Remove a setting that has its default value."""
    value = asked.get(name)
    if is_integer(value) and value == default:
        del asked[name]


def translate(options: Options, asked: Mapping[str, Any], meanings: Meanings, what: str) -> Options:
    """Return the options, changed by the settings of a foreign call.

    Args:
        options: initial options.
        asked: foreign settings.
        meanings: meanings of all existing settings.
        what: name of a setting in error messages.

    Raises:
        ValueError: a setting is unknown or has an impossible value; the message uses the caller's name for it.
    """
    if not isinstance(options, Options):
        raise ValueError(f"options must be a caransac.Options, not {type(options).__name__}")
    refuse_unknown(asked, meanings, what)
    for name, value in asked.items():
        try:
            options = replace(options, **meanings[name](value))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error
    return options


def translate_limited(
    options: Options, asked: Mapping[str, Any], meanings: Meanings, what: str, *, fewest: str, most: str
) -> Options:
    """Translate settings, without an early stop if the minimum number of hypotheses is the maximum.

    Args:
        options: initial options.
        asked: foreign settings.
        meanings: meanings of all existing settings.
        what: name of a setting in error messages.
        fewest: name of the setting with the minimum number of hypotheses.
        most: name of the setting with the maximum number of hypotheses.
    """
    options = translate(options, asked, meanings, what)
    limit = asked.get(most, THEIR_LIMIT)
    changes: dict[str, Any] = {"early_stop": False, **limited_to(limit)} if asked.get(fewest, 0) >= limit else {}
    return replace(options, **changes)

"""Other libraries' settings as options of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import index
from typing import Any

from caransac._support.arrays import is_integer, shorten
from caransac.options import Options, in_rounds, refuse_unknown

Meanings = Mapping[str, Callable[[Any], dict[str, Any]]]  # a setting's name -> the options its value stands for

THEIR_LIMIT = 100_000  # hypotheses that PoseLib and COLMAP try at most, unless told otherwise
MOST_HYPOTHESES = 1_000_000  # a few seconds; other libraries' limits beyond it often stand for none


def means(option: str) -> Callable[[Any], dict[str, Any]]:
    """The setting is an option by another name."""
    return lambda value: {option: value}


def mean_nothing(names: str) -> Meanings:
    """Settings, their names between spaces, of something that works differently here, and can be left to it."""
    return dict.fromkeys(names.split(), lambda _: {})


def must_be(only: object) -> Callable[[Any], dict[str, Any]]:
    """The setting would change the answer in a way that is not there: any value but this raises."""

    def check(value: object) -> dict[str, Any]:
        if value != only:
            raise ValueError(f"only {only!r} is supported, not {value!r}")
        return {}

    return check


def at_most(hypotheses: int) -> dict[str, Any]:
    """A limit on hypotheses; where theirs was left as it comes, ours stays, which is far lower and enough."""
    return {} if index(hypotheses) == THEIR_LIMIT else limited_to(hypotheses)


def limited_to(hypotheses: int) -> dict[str, Any]:
    """A limit on hypotheses; one that is beyond all, such as the largest integer of C, is the largest of ours."""
    return in_rounds(min(hypotheses, MOST_HYPOTHESES))


def at_least(hypotheses: int) -> dict[str, Any]:
    """Hypotheses before stopping early, which here depends only on what was found; see `translate_limited`."""
    index(hypotheses)  # raises if it is not a whole number
    return {}


def is_on(value: object, name: str) -> bool:
    """Whether a setting is on; a ValueError that names it for what is neither true nor false."""
    try:
        return bool(value)
    except (TypeError, ValueError) as error:  # arrays
        raise ValueError(f"{name} must be True or False, not {shorten(value)}") from error


def drop_default(asked: dict[str, Any], name: str, default: int) -> None:
    """Leave a setting out that was left as it comes."""
    value = asked.get(name)
    if is_integer(value) and value == default:
        del asked[name]


def translate(options: Options, asked: Mapping[str, Any], meanings: Meanings, what: str) -> Options:
    """The options with everything changed that a foreign call asks for.

    Args:
        options: where to start from.
        asked: the foreign settings.
        meanings: all settings that exist, and what each stands for.
        what: what they are called in an error.

    Raises:
        ValueError: a setting is unknown, or has an impossible value; the message names it as the caller knows it.
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
    """`translate`, but without an early stop where the fewest hypotheses asked for are the most.

    Args:
        options: where to start from.
        asked: the foreign settings.
        meanings: all settings that exist, and what each stands for.
        what: what they are called in an error.
        fewest: the setting that is the smallest number of hypotheses.
        most: the setting that is the largest.
    """
    options = translate(options, asked, meanings, what)
    limit = asked.get(most, THEIR_LIMIT)
    changes: dict[str, Any] = {"early_stop": False, **limited_to(limit)} if asked.get(fewest, 0) >= limit else {}
    return replace(options, **changes)

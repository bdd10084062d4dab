"""Conversion of results to and from plain JSON values; docs/formats.md describes the format.

The annotations of the fields determine how each is read back. `SHAPES` has the shapes of the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import is_integer, is_real, shorten
from caransac.camera import Camera

SCHEMA = 1  # version of the format; raised when an existing entry changes its meaning or is removed
FULL = {"full": True}  # metadata of long fields, which only full=True writes
# Shapes of fields. The length n is the number of matches. Other lengths of the same name are equal within one record.
SHAPES: dict[str, tuple[str | int, ...]] = {
    **dict.fromkeys(("R", "E", "F", "H"), (3, 3)),
    "t": (3,),
    **dict.fromkeys(("points1", "points2", "points2d", "given2"), ("n", 2)),
    "information": ("n", 2, 2),
    "correlations": ("n",),
    **dict.fromkeys(("points3d", "rays1", "rays2"), ("n", 3)),
    "probabilities": ("n",),
    "covariance": ("f", "f"),
    "covariance_of": ("f",),
    "samples": ("samples", "size"),
    "models": ("k", 3, "columns"),
    "best": (3, "columns"),
    "model": (3, "columns"),
    "msac_scores": ("k", "n"),
    "state": ("n", "c"),
}

Plain = Any  # None, a bool, a number, a text, or a list or dict of these


def to_plain(value: object) -> Plain:
    """Return a value of a result as None, bools, numbers, texts, lists and dicts. Infinity and NaN become None.

    A boolean array (N,) becomes the list of the indices of its true entries. An empty array of several dimensions
    becomes ``{"shape": [...]}``, because an empty list has no shape.
    """
    if isinstance(value, np.ndarray):
        return np.flatnonzero(value).tolist() if value.dtype == bool else _array_to_plain(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Camera):
        uncertain = {"distortion_deviation": value.distortion_deviation} if value.distortion_deviation else {}
        return value.to_dict() | {"focal_deviation": value.focal_deviation} | uncertain
    if isinstance(value, Mapping):
        return {str(name): to_plain(entry) for name, entry in value.items()}
    if hasattr(value, "_asdict"):  # a NamedTuple
        return to_plain(value._asdict())
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if hasattr(value, "to_dict"):  # a result in a result
        return value.to_dict(full=True)
    if is_dataclass(value) and not isinstance(value, type):
        return fields_to_plain(value, full=True)
    raise TypeError(f"a {type(value).__name__} cannot be part of a result")


def fields_to_plain(record: Any, *, full: bool) -> dict[str, Plain]:
    """Return the fields of a dataclass as plain values. Include the long fields only if `full`."""
    chosen = (field.name for field in fields(record) if full or not field.metadata.get("full"))
    return {name: to_plain(getattr(record, name)) for name in chosen}


def fields_from_plain(kind: type, values: Mapping[str, Any], num_matches: int) -> dict[str, Any]:
    """Return the arguments of a dataclass from plain values. Ignore unknown names.

    Raises:
        ValueError: a field is missing or does not fit its annotation; the message names it.
    """
    for field in fields(kind):
        required = field.default is MISSING and field.default_factory is MISSING
        if field.name not in values and required:
            also = "; to_dict(full=True) and save() include it" if field.metadata.get("full") else ""
            raise ValueError(f"{field.name} is missing{also}")
    return _entries({field.name: _hints(kind)[field.name] for field in fields(kind)}, values, num_matches)


def _entries(hints: Mapping[str, Any], values: Mapping[str, Any], num_matches: int) -> dict[str, Any]:
    """Convert the existing entries of a record by their annotations, and check their shapes against `SHAPES`."""
    found: dict[str, Any] = {}
    lengths: dict[str | int, int] = {"n": num_matches}
    for name in (name for name in hints if name in values):
        try:
            found[name] = from_plain(hints[name], values[name], num_matches)
            if name in SHAPES and found[name] is not None:
                _check_shape(np.shape(found[name]), SHAPES[name], lengths)
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error
    return found


def _check_shape(shape: tuple[int, ...], wanted: tuple[str | int, ...], lengths: dict[str | int, int]) -> None:
    """Raise a ValueError if a shape is not the wanted one. Record the lengths of its names in `lengths`."""
    if len(shape) == len(wanted):
        for length, of in zip(shape, wanted, strict=True):
            known = {"columns": min(max(length, 3), 4)}.get(of, length) if isinstance(of, str) else of
            lengths.setdefault(of, known)  # a model has three or four columns
    if shape != (expected := tuple(lengths.get(of, of) for of in wanted)):
        raise ValueError(f"must have shape {expected}, got {shape}")


def from_plain(hint: Any, value: Plain, num_matches: int) -> Any:
    """Invert `to_plain` by the annotation of the value. Raise a ValueError if the value does not fit it."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        named = [kind for kind in kinds if isinstance(value, Mapping) and value.get("type") == kind.__name__]
        return from_plain((named or kinds)[0], value, num_matches)
    if origin is np.ndarray:
        return _array(hint, value, num_matches)
    if origin is tuple:
        return tuple(from_plain(get_args(hint)[0], each, num_matches) for each in _as(list, value))
    if hint is Camera:
        return Camera.from_dict(_as(dict, value))
    if hasattr(hint, "_fields"):  # a NamedTuple
        entries, hints = _as(dict, value), _hints(hint)
        if set(hints) - set(entries):
            raise ValueError(f"must have {', '.join(hints)}, not {shorten(value)}")
        return hint(**_entries(hints, entries, num_matches))
    if isinstance(hint, type) and is_dataclass(hint):
        return hint(**fields_from_plain(hint, _as(dict, value), num_matches))
    return _single(hint, value)


def _single(hint: Any, value: Plain) -> Any:
    """Return a bool, number or text. Raise a ValueError if it does not fit its annotation."""
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    fits = {
        bool: isinstance(value, bool),
        int: is_integer(value),
        float: is_real(value) and np.isfinite(float(value)),
        str: isinstance(value, str),
    }.get(hint, value in choices if isinstance(value, str) else False)
    if not fits:
        expected = f"one of {', '.join(choices)}" if choices else f"a {getattr(hint, '__name__', hint)}"
        raise ValueError(f"must be {expected}, not {shorten(value)}")
    return float(value) if hint is float else value


def _array(hint: Any, value: Plain, num_matches: int) -> NDArray[Any]:
    """Return an array of the annotated type."""
    kind = get_args(get_args(hint)[-1])[0]
    if kind is np.bool_:
        index = np.array(_as(list, value), dtype=object)
        if not all(is_integer(each) and 0 <= each < num_matches for each in index):
            raise ValueError(f"must be indices of the {num_matches} matches")
        mask = np.zeros(num_matches, bool)
        mask[index.astype(np.int64)] = True
        return mask
    if isinstance(value, Mapping):
        shape = _as(list, value.get("shape"))
        if 0 not in shape or not all(is_integer(length) and 0 <= length < 2**31 for length in shape):
            raise ValueError(f"must be a list, or the shape of an empty array, not {shorten(value)}")
        return np.empty(shape, kind)
    array = np.array(_as(list, value), dtype=float)  # None becomes NaN
    if not np.isfinite(array).all():
        raise ValueError("must be finite numbers")
    if np.issubdtype(kind, np.integer) and not np.all((array >= 0) & (array < num_matches)):
        raise ValueError(f"must be indices of the {num_matches} matches")
    return array.astype(kind)


def _as(kind: type, value: Plain) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"must be a {kind.__name__}, not {shorten(value)}")
    return value


def _array_to_plain(array: NDArray[Any]) -> Plain:
    if array.size == 0 and array.ndim > 1:
        return {"shape": list(array.shape)}
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        array = array.astype(object)
        array[~np.isfinite(array.astype(float))] = None
    return array.tolist()


@lru_cache(maxsize=32)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)

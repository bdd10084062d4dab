"""Describe the settings of a verification. The text is stored with the geometries, so that changes are noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import caransac
from caransac._support.untrusted import parse_json
from caransac.verification.pair_records import VerificationOptions

UNRECORDED = ""  # settings of callers who did not pass any


def describe_settings(options: VerificationOptions, **further: object) -> str:
    """Return, as JSON, everything that a geometry depends on besides the pair itself.

    Args:
        options: options of the verification.
        further: options of the source.
    """
    settings: dict[str, Any] = {"caransac": caransac.__version__, **asdict(options), **further}
    settings |= settings.pop("estimation")
    return json.dumps(settings, sort_keys=True, default=str)


def changed_settings(before: str, now: str) -> list[str]:
    """Return the names of the settings that differ between two texts of `describe_settings`."""
    one, other = (_read(text) for text in (before, now))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def describe_kept(kept: Mapping[str | None, int], now: str) -> list[str]:
    """Describe pairs that were verified before with other settings, in lines of text.

    Args:
        kept: number of pairs by their settings; None for other software.
        now: the settings of this run.
    """
    lines = []
    for settings, count in kept.items():
        if settings == now:
            continue
        if settings is None:
            by = "by other software or an early version of caransac"
        elif changed := changed_settings(settings, now) if settings else []:
            by = f"with another {', '.join(changed)}"
        else:
            by = "with settings that were not recorded"
        lines.append(f"{count} pairs were verified before, {by}: they are kept; --overwrite verifies them again")
    return lines


def _read(text: str) -> dict[str, Any]:
    """Parse settings by name; empty if the text is invalid."""
    try:
        settings = parse_json(text)
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}

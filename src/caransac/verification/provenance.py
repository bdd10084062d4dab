"""With what pairs were verified: a text that is stored with their geometries, so that a change is noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import caransac
from caransac._support.untrusted import parse_json
from caransac.verification.pair_records import VerificationOptions

UNRECORDED = ""  # the settings of somebody who did not tell them


def describe_settings(options: VerificationOptions, **further: object) -> str:
    """All that a geometry depends on beside the pair itself, as JSON.

    Args:
        options: how pairs are verified.
        further: how a source reads them.
    """
    settings: dict[str, Any] = {"caransac": caransac.__version__, **asdict(options), **further}
    settings |= settings.pop("estimation")
    return json.dumps(settings, sort_keys=True, default=str)


def changed_settings(before: str, now: str) -> list[str]:
    """Names of the settings in which two texts of `describe_settings` differ."""
    one, other = (_read(text) for text in (before, now))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def describe_kept(kept: Mapping[str | None, int], now: str) -> list[str]:
    """Lines about pairs that were verified before, and not as they would be now.

    Args:
        kept: pairs by the settings they were verified with; None for those of other software.
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
    """Settings by name; none of a text that is something else."""
    try:
        settings = parse_json(text)
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}

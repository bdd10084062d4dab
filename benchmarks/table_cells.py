"""What the tables of the documents share: names of data sets, and cells."""

from __future__ import annotations

from typing import Any

Results = dict[str, dict[str, Any]]
DATA = {"rootsift/val": "RootSIFT", "aliked/val": "ALIKED", "orb8k/val": "ORB"}


def figure_cell(auc5: float, auc1: float, ms: float | None) -> str:
    """Accuracy and time for readers."""
    return f"{auc5:.1f} / {auc1:.1f}" + ("" if ms is None else f", {ms:.1f}")


def data_label(name: str) -> str:
    """The features of a data set for readers."""
    return DATA.get(name, name)


def set_label(name: str) -> str:
    """A set of homographies for readers: "real, rootsift/val" is "real pairs, RootSIFT"."""
    kind, _, data = name.partition(", ")
    data = {"rootsift": "RootSIFT", "orb": "ORB"}.get(data, data_label(data))
    return f"{kind} pairs, {data}"


def number(value: float | None) -> str:
    """A number for readers; empty where there is none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.2f}"


def totals(rows: dict[str, dict[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table of counts by command."""
    header = ["", *next(iter(rows.values()))]
    return header, [[name, *map(str, row.values())] for name, row in rows.items()]

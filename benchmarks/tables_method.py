"""Tables of the documents about the method itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from published import table
from table_cells import Results

from caransac.tuning import DEFAULT_TUNING, Tuning


def ablation(results: Results) -> str:
    """What every stage buys."""
    from ablation import STAGES, problem_table

    return "\n".join(
        f"{problem}:\n\n{problem_table(rows, list(STAGES))}" for problem, rows in results["ablation"]["rows"].items()
    )


def tuning(results: Results) -> str:
    """Every tuned number with its meaning, and what other values cost, where that was measured."""
    problems = results.get("ablation", {}).get("rows", {})
    meanings = dict(re.findall(r"^ {8}(\w+): (.+?)(?=^ {8}\w+: |\Z)", str(Tuning.__doc__), re.MULTILINE | re.DOTALL))
    lines = []
    for each in fields(Tuning):
        value = getattr(DEFAULT_TUNING, each.name)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        meaning = " ".join(meanings[each.name].split()).rstrip(".")
        lines.append(
            [
                f"`{each.name}`",
                shown,
                meaning,
                "; ".join(effect for rows in problems.values() for effect in effects(each.name, rows)),
            ]
        )
    return table(["number", "value", "meaning", "other values: change of AUC@5 / AUC@1"], lines)


def effects(name: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """What other values of a number change."""
    from ablation import base_of

    for label, row in rows.items():
        if label.startswith(f"{name} = "):
            changes = (row[key] - rows[base_of(label)][key] for key in ("auc5", "auc1"))
            yield f"{label.partition(' = ')[2]}: " + " / ".join(f"{change:+.2f}" for change in changes)


def worked_pair(results: Results) -> str:
    """One answer from start to end."""
    from worked_pair import worked_answer, worked_table

    content = results["worked_pair"]
    return f"{worked_table(content)}\n{worked_answer(content)}"

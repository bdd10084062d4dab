"""Tables of the documents about the method itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from published import table
from table_cells import Results

from caransac.tuning import CAMERAS, DEFAULT_TUNING, CameraTuning, Tuning


def ablation(results: Results) -> str:
    """What every stage buys."""
    from ablation import STAGES, problem_table

    return "\n".join(
        f"{problem}:\n\n{problem_table(rows, list(STAGES))}" for problem, rows in results["ablation"]["rows"].items()
    )


def tuning(results: Results) -> str:
    """Every tuned number of the loop with its meaning, and what other values cost, where that was measured."""
    problems = results.get("ablation", {}).get("rows", {})
    lines = []
    for name, *line in numbers_of(DEFAULT_TUNING):
        changes = (effect for rows in problems.values() for effect in effects(name, rows))
        lines.append([f"`{name}`", *line, "; ".join(changes)])
    return table(["number", "value", "meaning", "other values: change of AUC@5 / AUC@1"], lines)


def camera_tuning(_results: Results) -> str:
    """Every tuned number of cameras that are not exact."""
    lines = [[f"`{name}`", *line] for name, *line in numbers_of(CAMERAS)]
    return table(["number", "value", "meaning"], lines)


def numbers_of(record: Tuning | CameraTuning) -> Iterator[list[str]]:
    """Name, value and meaning of every number of a record."""
    text = str(type(record).__doc__)
    meanings = dict(re.findall(r"^ {8}(\w+): (.+?)(?=^ {8}\w+: |\Z)", text, re.MULTILINE | re.DOTALL))
    for each in fields(record):
        value = getattr(record, each.name)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        yield [each.name, shown, " ".join(meanings[each.name].split()).rstrip(".;")]


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

"""Tables of the documents about reliability: calibration, hard scenes, faults and interruptions."""

from __future__ import annotations

from published import percent, table
from row_labels import label as in_words
from table_cells import DATA, Results, totals


def calibration(results: Results) -> str:
    """Calibration of probabilities and confidences."""
    lines = []
    for data, rows in results["calibration"]["tables"].items():
        for label, row in rows.items():
            if "ECE" in row:
                said = [f"{row[name]:.3f}" for name in ("mean said", "mean true", "ECE")]
                lines.append([DATA.get(data, data), in_words("calibration", label), f"{row['count']:,}", *said])
    return table(["data", "", "count", "mean predicted", "observed frequency", "calibration error"], lines)


def unrelated(results: Results) -> str:
    """Confidences of pairs of unrelated images."""
    lines = [
        [data, in_words("calibration", label), str(row["count"]), str(row["above 0.5"])]
        for data, rows in results["calibration"]["tables"].items()
        for label, row in rows.items()
        if "above 0.5" in row
    ]
    return table(["data", "", "pairs", "with a confidence above 0.5"], lines)


def hard_scenes(results: Results) -> str:
    """Wrong answers among hard synthetic scenes, by what was told."""
    from hard_scenes import TOLD

    lines = []
    for told, rows in results["hard_scenes"]["parts"]["scenes"].items():
        counts = {name: sum(row[name] for row in rows.values()) for name in ("pairs", "wrong", "wrong_above_0.9")}
        lines.append([TOLD[told], *map(str, counts.values())])
    return table(["estimated", "pairs", "wrong or no answer", "wrong with a confidence above 0.9"], lines)


def hard_cases(results: Results) -> str:
    """Real pairs told the truth, something wrong, or little."""
    lines = []
    for part in ("calibration", "focal", "unrelated"):
        for label, row in results["hard_scenes"]["parts"].get(part, {}).items():
            counts = (str(row[name]) for name in ("pairs", "wrong", "wrong_above_0.9"))
            lines.append([label, *counts, f"{row['calibration_error']:.3f}"])
    header = ["", "pairs", "wrong or no answer", "wrong with a confidence above 0.9", "calibration error"]
    return table(header, lines)


def covariance(results: Results) -> str:
    """How many poses lie in the ellipses of their covariances."""
    lines = [
        [
            label,
            str(row["pairs"]),
            *(percent(row[f"inside_{share}"], row["pairs"]) for share in ("0.95", "0.5")),
            *(f"{row[name]:.2f}" for name in ("rotation", "direction")),
        ]
        for rows in results["covariance"]["parts"].values()
        for label, row in rows.items()
    ]
    header = ["", "pairs", "in the 95 % ellipse, %", "in the 50 % ellipse, %", "rotation, ratio", "direction, ratio"]
    return table(header, lines)


def hostile_databases(results: Results) -> str:
    """Databases of bad intentions, and what the command does."""
    from hostile_databases import hostile_table

    return hostile_table(results["hostile_databases"])


def faults(results: Results) -> str:
    """Injected faults, all commands together."""
    return table(*totals(results["faults"]["commands"]))


def interrupts(results: Results) -> str:
    """Interrupted commands."""
    return table(*totals(results["interrupts"]["commands"]))

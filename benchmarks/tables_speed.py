"""Tables of the documents about time and memory."""

from __future__ import annotations

from typing import Any

from published import table
from table_cells import DATA, Results, figure_cell

from caransac.metrics import FAILURE_DEG

NEXT_TO_PEERS = (
    "LM-LO 64",
    "LM-LO",
    "CA-RANSAC",
    "CA-RANSAC 4x256",
    "PoseLib",
    "PoseLib PROSAC 1024",
    "OpenCV USAC_DEFAULT",
    "OpenCV USAC_DEFAULT + PoseLib's LM",
    "GC-RANSAC",
    "MAGSAC++",
    "SupeRANSAC",
    "COLMAP",
)
OPTIONS_FOR_TIME = {
    "CA-RANSAC": ("the default: accuracy first, easy pairs stop early", "Options()"),
    "CA-RANSAC 4x256": ("every hypothesis, so that all pairs take the same time", "Options(early_stop=False)"),
    "CA-RANSAC 2x128": (
        "a limit for hard pairs",
        "Options(rounds=2, samples_per_round=128, early_stop=False)",
    ),
    "CA-RANSAC 1x64": (
        "one round, still with probabilities and a confidence",
        "Options(rounds=1, samples_per_round=64, early_stop=False)",
    ),
    "LM-LO": (
        "speed first, without probabilities and confidence",
        'Options(method="lm-lo", rounds=40, max_error_px=1.0)',
    ),
    "LM-LO 64": (
        "the least that is useful, where most matches are right",
        'Options(method="lm-lo", rounds=1, samples_per_round=64, max_error_px=1.0)',
    ),
}


def speed_pairs(results: Results) -> str:
    """Time and accuracy of the same runs, next to the peers."""
    rows = speed_rows(results, "E")
    names = [name for name in DATA if any(data == name for data, _ in rows)]
    lines = (
        [
            method,
            *(figure_cell(r["AUC5"], r["AUC1"], r["ms"]) if (r := rows.get((name, method))) else "" for name in names),
        ]
        for method in NEXT_TO_PEERS
        if any((name, method) in rows for name in names)
    )
    sizes = {row["data"]: row["matches"] for row in results["speed"]["parts"]["parts"]}
    header = [f"{DATA[name]}, {sizes[name]:.0f} matches" for name in names]
    return table(["AUC@5° / AUC@1°, median ms", *header], lines)


def speed_rows(results: Results, problem: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of real pairs by data set and method."""
    pairs = results["speed"]["parts"]["pairs"]
    return {(row["data"], row["method"]): row for row in pairs if row["problem"] == problem}


def speed_ratios(results: Results) -> str:
    """Our time divided by that of a peer."""
    from speed_methods import RATIOS

    lines = []
    for problem in ("E", "F"):
        rows = speed_rows(results, problem)
        names = [name for name in DATA if any(data == name for data, _ in rows)]
        for ours, peer in RATIOS:
            found = [(rows.get((name, ours)), rows.get((name, peer))) for name in names]
            if all(mine and other for mine, other in found):
                lines.append([problem, ours, peer, *(f"{mine['ms'] / other['ms']:.2f}" for mine, other in found)])
    return table(["problem", "ours", "peer", *(DATA[name] for name in names)], lines)


def speed_leads(results: Results) -> str:
    """Where the best of our settings is ahead of the best peer's at the same time, and where it is not."""
    from speed import FIGURES, TIMES_MS, best_within

    lines = []
    for name, label in DATA.items():
        rows = [row for (data, _), row in speed_rows(results, "E").items() if data == name]
        for figure, title in FIGURES.items():
            leads = []
            for ms in TIMES_MS:
                mine, other = (best_within(rows, ms, figure, ours) for ours in (True, False))
                if mine and other:
                    leads.append((mine[figure] - other[figure], ms, other["method"]))
            if leads:
                cells = [f"{lead:+.1f} (within {ms} ms, {peer})" for lead, ms, peer in (min(leads), max(leads))]
                behind = [f"{ms}" for lead, ms, _ in leads if lead < 0]
                lines.append([label, title, *cells, ", ".join(behind) or "none"])
    return table(["data", "figure", "smallest lead", "largest lead", "behind within ms"], lines)


def speed_parts(results: Results) -> str:
    """Where the time of an estimate goes."""
    from speed_parts import parts_text

    return parts_text([short_name(row) for row in results["speed"]["parts"]["parts"]])


def short_name(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the name of its features."""
    return row | {"data": DATA.get(row["data"], row["data"])}


def speed_kernels(results: Results) -> str:
    """How fast the kernels are."""
    from speed_parts import kernels_text

    return kernels_text(results["speed"]["parts"]["kernels"])


def speed_threads(results: Results) -> str:
    """What a second thread gains."""
    from speed_parts import threads_text

    return threads_text([short_name(row) for row in results["speed"]["parts"]["threads"]])


def speed_scale(results: Results) -> str:
    """Time and memory by the number of matches."""
    rows = results["speed"]["parts"]["scale"]
    cells = {(row["matches"], row["right"], row["method"]): row for row in rows}
    lines = []
    for count, share in dict.fromkeys((row["matches"], row["right"]) for row in rows):
        ours, *peers = (cells[count, share, name] for name in ("CA-RANSAC, auto", "PoseLib", "USAC_DEFAULT"))
        ratios = [f"{ours['ms'] / peer['ms']:.3f}" for peer in peers]
        memory = "" if ours["mb"] is None else f"{ours['mb']:.0f}"
        error = f"{ours['deg']:.3f}°" if ours["deg"] < FAILURE_DEG else "no answer"
        lines.append([f"{count:,}", f"{share:.0%}", f"{ours['ms']:.1f}", *ratios, memory, error])
    header = ["matches", "right", "ms", "of PoseLib's time", "of USAC_DEFAULT's", "MB added", "pose error"]
    return table(header, lines)


def options_for_time(results: Results) -> str:
    """Options by what they cost."""
    rows = speed_rows(results, "E")
    names = [name for name in DATA if any(data == name for data, _ in rows)]
    lines = [
        [wanted, f"`{options}`", *(f"{rows[name, method]['ms']:.1f}" for name in names)]
        for method, (wanted, options) in OPTIONS_FOR_TIME.items()
    ]
    return table(["you want", "options", *(f"{DATA[name]}, ms" for name in names)], lines)


def package(results: Results) -> str:
    """Size of the wheel, times of import."""
    content = results["package"]
    lines = [[name, f"{max(ms, 0):.0f} ms"] for name, ms in content["ms"].items()]
    for name, sizes in content["wheels"].items():
        lines.append([f"`{name}`", f"{sizes['packed'] / 1e6:.2f} MB, unpacked {sizes['unpacked'] / 1e6:.2f} MB"])
    return table(["", "cost"], lines)


def dense(results: Results) -> str:
    """Very many matches, half of them right, by the noise."""
    cells = results["dense"]["cells"]
    lines = []
    for key, rows in cells.items():
        count, noise, share = key.split()
        if share == "0.5" and int(count) >= 50_000:
            lines.append([f"{int(count):,}", f"{noise} px", *(dense_cell(row) for row in rows.values())])
    return table(["matches", "noise", *(f"{name}: error, ms, MB" for name in next(iter(cells.values())))], lines)


def dense_cell(row: dict[str, float] | None) -> str:
    """Error, time and memory for readers; of a run that took too long, nothing."""
    if row is None:
        return "took too long"
    error = max(row["rotation_deg"], row["translation_deg"])
    told = f"{error:.3f}°" if error < FAILURE_DEG else "no answer"
    return f"{told}, {row['ms']:.0f}, {row['memory_mb']:.0f}"

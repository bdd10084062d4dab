"""The tables of the documents: one function for each, from the result files to Markdown.

A function raises KeyError if the files have no data for its table. A document shows the table of the function
`speed_pairs` between the lines `<!-- table: speed-pairs -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from caransac._support.files import replacing
from caransac.learned.weights_file import weights_path
from caransac.tuning import CAMERAS, DEFAULT_TUNING, CameraTuning, Tuning
from caransac_lab.bench.machine import CLONE
from caransac_lab.bench.paper import PRESET
from caransac_lab.bench.paper import TABLES as PAPER_TABLES
from caransac_lab.bench.publication import RESULTS, columns_table, footer, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.bench.studies import load_study
from caransac_lab.bench.studies.paper_rows import (
    ABLATIONS,
    AUTHORS,
    FILTERS,
    FIRST,
    METHODS,
    ROOTSIFT,
    ROUNDS,
    differences_table,
    find,
    orders_table,
)
from caransac_lab.metrics import FAILURE_DEG
from caransac_lab.networks.weights import find_weights

DOCUMENTS = ("README.md", "docs/**/*.md", "benchmarks/results/README.md")
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Results = dict[str, dict[str, Any]]
DATA = {"rootsift/val": "RootSIFT", "aliked/val": "ALIKED", "orb8k/val": "ORB"}
SCORED = DATA | {"xfeat/val=confidence": "XFeat", "aliked_lg/val=confidence": "ALIKED + LightGlue"}
UNSCORED = {f"{name.partition('=')[0]}=none": f"{label}, no scores" for name, label in SCORED.items()}


def figure_cell(auc5: float, auc1: float, ms: float | None) -> str:
    """Format accuracy and time."""
    return f"{auc5:.1f} / {auc1:.1f}" + ("" if ms is None else f", {ms:.1f}")


def data_label(name: str) -> str:
    """Return the name of a data set's features."""
    return DATA.get(name, name)


def set_label(name: str) -> str:
    """Return the name of a set of homographies: "real, rootsift/val" becomes "real pairs, RootSIFT"."""
    kind, _, data = name.partition(", ")
    data = {"rootsift": "RootSIFT", "orb": "ORB"}.get(data, data_label(data))
    return f"{kind} pairs, {data}"


def number(value: float | None) -> str:
    """Format a number; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.2f}"


KNOWN = {
    "CA-RANSAC, early stop": "caransac, default: CA-RANSAC, stops early",
    "CA-RANSAC": "caransac, all 1024 hypotheses",
    PRESET: "caransac, the paper's own algorithm: `Options.paper()`",
    "LM-LO": "caransac, classical: LM-LO",
    "PoseLib PROSAC": "PoseLib, PROSAC",
    "PoseLib, adaptive": "PoseLib, adaptive",
    "MAGSAC++": "MAGSAC++ (pymagsac)",
    "GC-RANSAC": "GC-RANSAC (pygcransac)",
    "SupeRANSAC": "SupeRANSAC",
    "COLMAP": "COLMAP (pycolmap)",
    "OpenCV USAC_DEFAULT": "OpenCV, USAC_DEFAULT",
    "OpenCV USAC_MAGSAC": "OpenCV, USAC_MAGSAC",
}
UNCERTAIN = {
    "uncertain 5%": "caransac, off by 5 %, `focal_deviation=0.05`",
    "given 5%": "caransac, off by 5 %, passed as exact",
    "unknown": "caransac, unknown, image sizes given",
    "PoseLib shared focal": "PoseLib, unknown, the same for both images",
}


OWN_METHODS = ("CA-RANSAC", "LM-LO", "ContextFilter")  # prefixes of the names of our own methods
DEFAULT = "CA-RANSAC, early stop"
MOST_NAMED = 3  # maximum number of peers named in a cell
BEST_THRESHOLD = ("PoseLib PROSAC", "OpenCV USAC_DEFAULT")

Figures = tuple[float, float, float]
FIGURES = ("AUC5", "AUC1", "ms")


def first_screen(results: Results) -> str:
    """Poses from matches alone, with photographs, and by the two best known libraries, without times."""
    tables = results["photographs"]["tables"]
    columns = ("matches alone", "with photographs", *list(PHOTOGRAPHS)[2:])
    cells = (
        [SCORED[name], *(figure_cell(found["rows"][row]["AUC5"], found["rows"][row]["AUC1"], None) for row in columns)]
        for name, found in tables.items()
    )
    return table(["AUC@5° / AUC@1°", *columns], cells)


PHOTOGRAPHS = {
    "matches alone": "caransac, matches alone",
    "with photographs": "caransac, with photographs",
    "PoseLib": "PoseLib",
    "OpenCV USAC_MAGSAC": "OpenCV USAC_MAGSAC",
}


def photographs(results: Results) -> str:
    """Poses from matches alone and with the photographs, next to the peers, by match set."""
    tables = results["photographs"]["tables"]
    cells = (
        [SCORED[name], *(figure_cell(*(found["rows"][row][key] for key in FIGURES)) for row in PHOTOGRAPHS)]
        for name, found in tables.items()
    )
    return table(["AUC@5° / AUC@1°, ms", *PHOTOGRAPHS.values()], cells)


def photographs_fundamental(results: Results) -> str:
    """Fundamental matrices from matches alone and with the photographs, by match set."""
    rows = {"F, matches alone": "matches alone", "F, with photographs": "with photographs"}
    cells = (
        [SCORED[name], *(figure_cell(*(found["rows"][row][key] for key in FIGURES)) for row in rows)]
        for name, found in results["photographs"]["tables"].items()
    )
    return table(["AUC@5° / AUC@1°, ms", *rows.values()], cells)


def photographs_ablation(results: Results) -> str:
    """The refinement of matches with one number changed, by match set."""
    tables = results["photographs"]["tables"]
    names = next(iter(tables.values()))["variants"]
    cells = (
        [
            name,
            *(figure_cell(*(found["variants"][name][key] for key in FIGURES[:2]), None) for found in tables.values()),
        ]
        for name in names
    )
    return table(["AUC@5° / AUC@1°", *(SCORED[name] for name in tables)], cells)


def match_sets(results: Results, problem: str) -> Iterator[tuple[str, int, dict[str, Figures]]]:
    """Yield every match set: its name, the number of pairs, and AUC@5, AUC@1 and ms by method."""
    rows = [row for name in ("peers", "unscored") if name in results for row in results[name]["rows"]]
    for data, label in (SCORED | UNSCORED).items():
        found = [row for row in rows if (row["problem"], row["dataset"]) == (problem, data)]
        figures = {row["method"]: (row["figures"]["AUC5"][0], row["figures"]["AUC1"][0], row["ms"]) for row in found}
        if figures:
            yield label, found[0]["pairs"], figures


def matchers_poses(results: Results) -> str:
    """Poses with known cameras by match set."""
    return matchers_table(results, "E")


def matchers_fundamental(results: Results) -> str:
    """Fundamental matrices by match set."""
    return matchers_table(results, "F")


def matchers_table(results: Results, problem: str) -> str:
    """Format the match sets: our methods, PoseLib, OpenCV, and the best of all other peers at AUC@5."""
    columns = {
        DEFAULT: "default",
        "CA-RANSAC": "all 1024 hypotheses",
        PRESET: "paper",
        "LM-LO": "LM-LO",
        "PoseLib PROSAC": "PoseLib, 1024",
        "PoseLib, adaptive": "PoseLib, adaptive",
        "OpenCV USAC_DEFAULT": "OpenCV USAC_DEFAULT",
        "OpenCV USAC_MAGSAC": "OpenCV USAC_MAGSAC",
    }
    lines = []
    for label, pairs, rows in match_sets(results, problem):
        others = [name for name in rows if name not in columns and not name.startswith(OWN_METHODS)]
        chosen = [*columns, *sorted(others, key=lambda name: rows[name][0])[-1:]]
        best = best_of([rows[name] for name in chosen if name in rows])
        cells = [marked(rows[name], best) if name in rows else "" for name in chosen]
        cells[len(columns) :] = [f"{name}: {cells[-1]}" for name in chosen[len(columns) :]]
        lines.append([f"{label}, {pairs} pairs", *cells])
    return table(["AUC@5° / AUC@1°, ms", *columns.values(), "best of the others"], lines)


def headline(results: Results) -> str:
    """Accuracy, time and calibration next to the peers: cameras known, uncertain, unknown."""
    names = [name for name in DATA if any(row["dataset"] == name for row in results["peers"]["rows"])]
    rows = {(row["dataset"], row["method"]): row for row in results["peers"]["rows"] if row["problem"] == "E"}
    figures = {
        key: (row["figures"]["AUC5"][0], row["figures"]["AUC1"][0], row["ms"])
        for key, row in rows.items()
        if key[1] in KNOWN
    }
    best = {name: best_of([values for (data, _), values in figures.items() if data == name]) for name in names}
    pairs = {row["dataset"]: row["pairs"] for row in results["peers"]["rows"]}
    lines = [["*Cameras known*", *(f"*{pairs[name]} pairs*" for name in names), ""]]
    for method, label in KNOWN.items():
        if any((name, method) in figures for name in names):
            cells = [marked(figures[name, method], best[name]) if (name, method) in figures else "" for name in names]
            lines.append([label, *cells, known_calibration(results, method, names)])
    focal = results["focal"]["tables"]
    counts = (f"*{focal[name]['pairs']} pairs*" if name in focal else "" for name in names)
    lines.append(["*Focal length uncertain or unknown*", *counts, ""])
    for row_name, label in UNCERTAIN.items():
        found = [focal[name]["rows"].get(row_name) if name in focal else None for name in names]
        cells = ["" if row is None else figure_cell(row["AUC5"], row["AUC1"], row["ms"]) for row in found]
        errors = [row["confidence_calibration_error"] for row in found if row is not None]
        lines.append([label, *cells, calibration_cell(errors)])
    return table(["pose: AUC@5° / AUC@1°, ms", *(DATA[name] for name in names), "calibration error"], lines)


def best_of(rows: list[tuple[float, float, float]]) -> tuple[str, str, str]:
    """Return the largest AUCs and the shortest time, as printed."""
    auc5, auc1, ms = zip(*rows, strict=True)
    return f"{max(auc5):.1f}", f"{max(auc1):.1f}", f"{min(ms):.1f}"


def marked(row: tuple[float, float, float], best: tuple[str, str, str]) -> str:
    """Format accuracy and time, with the best values in bold."""
    texts = (f"{value:.1f}" for value in row)
    auc5, auc1, ms = (f"**{text}**" if text == wanted else text for text, wanted in zip(texts, best, strict=True))
    return f"{auc5} / {auc1}, {ms}"


def known_calibration(results: Results, method: str, names: list[str]) -> str:
    """Calibration error of the confidence with known cameras; only the default method has one."""
    if method not in ("CA-RANSAC", "CA-RANSAC, early stop"):
        return "no confidence"
    tables = results["calibration"]["tables"]
    return calibration_cell([tables[name]["confidence"]["ECE"] for name in names if name in tables])


def calibration_cell(errors: list[float | None]) -> str:
    """Format expected calibration errors by data set."""
    known = [f"{error:.2f}" for error in errors if error is not None]
    return ", ".join(known) if known else "no confidence"


def focal_scenes(results: Results) -> str:
    """Focal lengths pooled over real scenes, and poses with them."""
    from caransac_lab.bench.studies.focal_scenes import describe

    tables = results["focal_scenes"]["tables"]
    lines = (
        describe(f"{DATA.get(name, name)}, {scene}", row)
        for name, rows in tables.items()
        for scene, row in rows.items()
    )
    return table(["", "pairs that determine it", "focal error", "unknown", "pooled", "true cameras"], lines)


def lenses(results: Results) -> str:
    """Poses through lenses of unknown distortion, RootSIFT."""
    from caransac_lab.bench.studies.lenses import cell_text

    rows = results["lenses"]["tables"]["rootsift/val"]["rows"]
    k1s = list(next(iter(rows.values())))
    return table(
        ["", *(f"k1 = {k1}" for k1 in k1s)],
        ([in_words("lenses", name), *(cell_text(row[k1]) for k1 in k1s)] for name, row in rows.items()),
    )


def absolute(results: Results) -> str:
    """Absolute poses next to the peers, RootSIFT, by the number of reference images."""
    tables = {name: found for name, found in results["absolute"]["tables"].items() if name.startswith("rootsift")}
    labels = next(iter(tables.values()))["rows"]
    cells = (
        [
            in_words("absolute", label),
            *(figure_cell(*(found["rows"][label][key] for key in ("AUC5", "AUC1", "ms"))) for found in tables.values()),
        ]
        for label in labels
    )
    header = [f"{name.partition(', ')[2]}, {found['queries']} queries" for name, found in tables.items()]
    return table(["AUC@5° / AUC@1°, ms", *header], cells)


def losses(results: Results) -> str:
    """Where a peer is more accurate or faster than the default."""
    lines = []
    for title, mine, peers in comparisons(results):
        leads = [{name: row[i] - mine[i] for name, row in peers.items()} for i in (0, 1)]
        faster = {name: mine[2] / row[2] for name, row in peers.items()}
        lines.append([title, *(leaders(lead, 0.05, "+{:.1f}") for lead in leads), leaders(faster, 1.05, "{:.1f}x")])
    return table(["", "more accurate at AUC@5", "more accurate at AUC@1", "faster"], lines)


def leaders(leads: dict[str, float], least: float, text: str) -> str:
    """Name the methods that lead by more than `least`, the largest lead first; only the best variant of each."""
    ahead: dict[str, float] = {}
    for name, lead in sorted(leads.items(), key=lambda each: -each[1]):
        if lead >= least:
            ahead.setdefault(name.partition(", ")[0], lead)
    named = [f"{name} {text.format(lead)}" for name, lead in list(ahead.items())[:MOST_NAMED]]
    more = len(ahead) - MOST_NAMED
    return ", ".join(named + ([f"and {more} more"] if more > 0 else [])) or "none"


def comparisons(results: Results) -> Iterator[tuple[str, Figures, dict[str, Figures]]]:
    """Yield each comparison: its title, the figures of the default, and those of the peers (AUC@5, AUC@1, ms)."""
    for problem, title in (("E", "pose"), ("F", "fundamental matrix")):
        for label, _, rows in match_sets(results, problem):
            yield from compared(f"{title}, {label}", rows)
    for name, found in results.get("absolute", {"tables": {}})["tables"].items():
        data, _, references = name.partition(", ")
        known = {label: row for label, row in found["rows"].items() if "focal" not in label}
        rows = {label: (row["AUC5"], row["AUC1"], row["ms"]) for label, row in known.items()}
        yield from compared(f"absolute pose, {data_label(data)}, {references}", rows)
    planes = results.get("homographies", {"sets": {}})
    for name in planes["sets"]:
        if not name.startswith("synthetic"):
            found = {label: sets[name] for label, sets in planes["methods"].items()}
            rows = {label: (row["AUC5"], row["AUC1"], row["ms"]) for label, row in found.items()}
            yield from compared(f"homography, {set_label(name)}", rows)


def compared(title: str, rows: dict[str, Figures]) -> Iterator[tuple[str, Figures, dict[str, Figures]]]:
    """Yield the default and the peers among some rows; nothing if the default is missing."""
    peers = {name: row for name, row in rows.items() if not name.startswith(OWN_METHODS) and row[2] is not None}
    if DEFAULT in rows and rows[DEFAULT][2] is not None:
        yield title, rows[DEFAULT], peers


def homographies(results: Results) -> str:
    """Homographies next to the peers."""
    content = results["homographies"]
    names = [name for name in content["sets"] if not name.startswith("synthetic") or " 2 %" in name]
    cells = (
        [label, *(figure_cell(*(sets[name][key] for key in ("AUC5", "AUC1", "ms"))) for name in names)]
        for label, sets in content["methods"].items()
    )
    return table(
        ["AUC@5 / AUC@1 in px, ms", *(f"{set_label(n)}, {content['sets'][n]['pairs']} pairs" for n in names)], cells
    )


def thresholds(results: Results) -> str:
    """The automatic threshold compared with fixed ones, by the added noise, at the original image size."""
    tables = results["thresholds"]["tables"]
    places = [place for place in next(iter(tables.values()))["CA-RANSAC, auto"] if place.startswith("x1, ")]
    lines = []
    for label in ("CA-RANSAC, auto", "CA-RANSAC, 1 px", *BEST_THRESHOLD):
        tried = [each for each in next(iter(tables.values())) if each == label or each.startswith(f"{label}, ")]
        if tried:
            cells = (
                figure_cell(*max((rows[each][place]["AUC5"], rows[each][place]["AUC1"]) for each in tried), None)
                for rows in tables.values()
                for place in places
            )
            lines.append([f"{label}, the best of all" if label in BEST_THRESHOLD else label, *cells])
    header = (f"{data_label(name)}, {place.partition(', ')[2]}" for name in tables for place in places)
    return table(["threshold; AUC@5° / AUC@1°", *header], lines)


def tuned(results: Results) -> str:
    """Thresholds tuned on other scenes, and the resulting figures."""
    rows = {(row["method"], row["problem"]): row for row in results["tuned"]["rows"]}
    lines = []
    for method in dict.fromkeys(name for name, _ in rows):
        cells = []
        for problem in ("E", "F"):
            row = rows.get((method, problem))
            figures = None if row is None else (row["figures"]["AUC5"][0], row["figures"]["AUC1"][0])
            cells += ["", ""] if row is None else [f"{row['max_error_px']}", figure_cell(*figures, None)]
        lines.append([method, *cells])
    return table(["", "E: px", "AUC@5° / AUC@1°", "F: px", "AUC@5° / AUC@1°"], lines)


def robustness(results: Results) -> str:
    """Synthetic pairs in unusual settings."""
    tables = results["robustness"]["tables"]
    lines = []
    for setting in tables["E"]:
        cells = []
        for rows in tables.values():
            row = rows[setting]
            cells += [f"{row['CA AUC5']:.1f}", f"{row['LM-LO AUC5']:.1f}", f"{row['gain']:+.1f} ± {row['+-']:.1f}"]
        lines.append([setting, *cells])
    header = (f"{problem}: {name}" for problem in tables for name in ("CA-RANSAC", "LM-LO", "difference"))
    return table(["AUC@5°", *header], lines)


def any_scene(results: Results) -> str:
    """Right answers for rendered scenes, by what is known about the cameras."""
    scenes = results["any_scene"]["scenes"]
    told = list(next(iter(scenes.values())))
    cells = (
        [scene, *(f"{row['right']} of {row['answers']}" if (row := rows.get(each)) else "" for each in told)]
        for scene, rows in scenes.items()
    )
    return table(["right answers", *(in_words("any_scene", each) for each in told)], cells)


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
        "minimum time, if most matches are right",
        'Options(method="lm-lo", rounds=1, samples_per_round=64, max_error_px=1.0)',
    ),
}


def speed_pairs(results: Results) -> str:
    """Time and accuracy of the same runs, compared with the peers."""
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
    """Return the rows of real pairs by data set and method."""
    pairs = results["speed"]["parts"]["pairs"]
    return {(row["data"], row["method"]): row for row in pairs if row["problem"] == problem}


def speed_ratios(results: Results) -> str:
    """Our time divided by that of a peer."""
    from caransac_lab.bench.studies.speed_methods import RATIOS

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
    """Where the best of our settings leads the best peer at the same time, and where it does not."""
    from caransac_lab.bench.studies.speed import FIGURES, TIMES_MS, best_within

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
    from caransac_lab.bench.studies.speed_parts import parts_text

    return parts_text([short_name(row) for row in results["speed"]["parts"]["parts"]])


def short_name(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the name of its features."""
    return row | {"data": DATA.get(row["data"], row["data"])}


def speed_kernels(results: Results) -> str:
    """Speed of the kernels."""
    from caransac_lab.bench.studies.speed_parts import kernels_text

    return kernels_text(results["speed"]["parts"]["kernels"])


def speed_threads(results: Results) -> str:
    """Gain of a second thread."""
    from caransac_lab.bench.studies.speed_parts import threads_text

    return threads_text([short_name(row) for row in results["speed"]["parts"]["threads"]])


def speed_counts(results: Results) -> str:
    """Milliseconds of poses by the number of matches, next to the peers."""
    from caransac_lab.bench.studies.speed import counts_table

    rows = results["speed"]["parts"]["counts"]["E"]
    return counts_table({name: rows[name] for name in (*NEXT_TO_PEERS, "OpenCV USAC_MAGSAC") if name in rows})


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
    """Options by their cost in time."""
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
    """Format error, time and memory; empty for a run that took too long."""
    if row is None:
        return "took too long"
    error = max(row["rotation_deg"], row["translation_deg"])
    told = f"{error:.3f}°" if error < FAILURE_DEG else "no answer"
    return f"{told}, {row['ms']:.0f}, {row['memory_mb']:.0f}"


def verification(results: Results) -> str:
    """Verification of a database compared with COLMAP."""
    columns = {
        "pairs_per_second": "pairs per second",
        "cpu_ms_per_pair": "processor ms per pair",
        "recall": "right matches found",
        "precision": "found ones that are right",
    }
    return columns_table(results["verification"]["rows"], columns)


def reconstruction(results: Results) -> str:
    """COLMAP's mapper after each verification."""
    columns = {
        "registered": "images",
        "points": "points",
        "reprojection_px": "reprojection error, px",
        "median_pose_error_deg": "median pose error, °",
        "verification_s": "verification, s",
    }
    lines = [
        [scene, tool, *(str(row.get(name, "")) for name in columns)]
        for scene, found in results["reconstruction"]["scenes"].items()
        for tool, row in found["rows"].items()
    ]
    return table(["scene", "verified by", *columns.values()], lines)


def reconstruction_photographs(results: Results) -> str:
    """COLMAP's mapper after each verification of photographs, with the images at wrong places."""
    columns = {"registered": "images", "wrong": "wrong images", "points": "points"}
    columns |= {"median_pose_error_deg": "median pose error, °", "worst_pose_error_deg": "worst, °"}
    lines = []
    for scene, found in results["reconstruction"]["photographs"].items():
        lines.append([f"*{scene}, {found['views']} images*", *[""] * len(columns)])
        rows = {tool: found["rows"][tool] for tool in ("COLMAP", "caransac, 3 px")}  # the defaults
        lines += [[tool, *(str(row.get(name, "")) for name in columns)] for tool, row in rows.items()]
    return table(["verified by", *columns.values()], lines)


def keypoints(results: Results) -> str:
    """COLMAP's mapper before and after the refinement of keypoints."""
    columns = load_study("keypoints").COLUMNS
    lines = []
    for scene, found in results["keypoints"]["scenes"].items():
        lines.append([f"*{scene}, {found['views']} images*", *[""] * len(columns)])
        lines += [[row, *(number(figures[name]) for name in columns)] for row, figures in found["rows"].items()]
    return table(["", *columns.values()], lines)


def focal_pooling(results: Results) -> str:
    """Reconstruction without a focal length."""
    columns = {
        "stored_focal_error_percent": "focal error before mapping, %",
        "pairs_with_pose": "pairs with a pose",
        "median_pair_error_deg": "their median error, °",
        "verification_s": "verification, s",
        "registered": "images",
        "points": "points",
        "focal_error_percent": "focal error after mapping, %",
    }
    return columns_table(results["focal_pooling"]["means"], columns, number)


def photos(results: Results) -> str:
    """Large photographs by matching method."""
    ways = {
        "now": "`--max-size 1600`, the default",
        "now, full size": "`--max-size 0`",
        "COLMAP, CA-RANSAC": "COLMAP's features and matches, our estimator",
        "COLMAP": "COLMAP's features, matches and estimator",
    }
    lines = []
    for title, found in results["photos"]["sets"].items():
        lines.append([f"*{title}*", *[""] * 5])
        for way, label in ways.items():
            row, count = found["ways"][way], len(found["pairs"])
            cells = [f"{row['seconds']:.1f} s", f"{row['megabytes']:.0f} MB"]
            cells += [", ".join(f"{each:.0f}" for each in row["inliers"]), f"{row['error_deg'][0]:.2f}°"]
            lines.append([label, *cells, f"{row['within_5_deg']} of {count}"])
    header = ["", "processor time", "peak memory", "inliers: least, median, most", "median error", "poses within 5°"]
    return table(header, lines)


def real_databases(results: Results) -> str:
    """Real matches verified by both tools, and the resulting reconstructions of COLMAP's mapper."""
    lines = []
    for scene, found in results["real_databases"]["scenes"].items():
        lines.append([f"*{scene}, {found['images']} images*", *[""] * 6])
        for tool, row in found["rows"].items():
            counts = (str(row[name]) for name in ("right", "wrong", "registered", "points", "seen_by_three"))
            lines.append([tool, *counts, "" if row["error_px"] is None else f"{row['error_px']:.2f}"])
    header = ["", "right matches", "wrong", "images", "points", "in 3 images or more", "reprojection error, px"]
    return table(header, lines)


def third_party(results: Results) -> str:
    """Scripts of other projects, unchanged and with our import."""
    from caransac_lab.bench.studies.third_party import rows_table

    return rows_table(results["third_party"]["rows"])


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
    """Wrong answers among hard synthetic scenes, by what the estimator knows."""
    from caransac_lab.bench.studies.hard_scenes import TOLD

    lines = []
    for told, rows in results["hard_scenes"]["parts"]["scenes"].items():
        counts = {name: sum(row[name] for row in rows.values()) for name in ("pairs", "wrong", "wrong_above_0.9")}
        lines.append([TOLD[told], *map(str, counts.values())])
    return table(["estimated", "pairs", "wrong or no answer", "wrong with a confidence above 0.9"], lines)


def hard_cases(results: Results) -> str:
    """Real pairs with true, wrong or little information about the cameras."""
    lines = []
    for part in ("calibration", "focal", "unrelated"):
        for label, row in results["hard_scenes"]["parts"].get(part, {}).items():
            counts = (str(row[name]) for name in ("pairs", "wrong", "wrong_above_0.9"))
            lines.append([label, *counts, f"{row['calibration_error']:.3f}"])
    header = ["", "pairs", "wrong or no answer", "wrong with a confidence above 0.9", "calibration error"]
    return table(header, lines)


def covariance(results: Results) -> str:
    """Share of poses inside the ellipsoids of their covariances."""
    from caransac_lab.bench.studies.covariance import coverage_table

    parts = results["covariance"]["parts"].values()
    return coverage_table({label: row for rows in parts for label, row in rows.items()})


def hostile_databases(results: Results) -> str:
    """Malicious databases, and the reaction of the command."""
    from caransac_lab.bench.studies.hostile_databases import hostile_table

    return hostile_table(results["hostile_databases"])


def faults(results: Results) -> str:
    """Injected faults, for all commands together."""
    return columns_table(results["faults"]["commands"])


def interrupts(results: Results) -> str:
    """Interrupted commands."""
    return columns_table(results["interrupts"]["commands"])


def ablation(results: Results) -> str:
    """Gain of every stage."""
    from caransac_lab.bench.studies.ablation import STAGES, problem_table

    return "\n".join(
        f"{problem}:\n\n{problem_table(rows, list(STAGES))}" for problem, rows in results["ablation"]["rows"].items()
    )


def tuning(results: Results) -> str:
    """Every tuned number of the loop with its meaning, and the measured effect of other values."""
    problems = results.get("ablation", {}).get("rows", {})
    lines = []
    for name, *line in numbers_of(DEFAULT_TUNING):
        changes = (effect for rows in problems.values() for effect in effects(name, rows))
        lines.append([f"`{name}`", *line, "; ".join(changes)])
    return table(["number", "value", "meaning", "other values: change of AUC@5 / AUC@1"], lines)


def camera_tuning(results: Results) -> str:
    """Every tuned number of inexact cameras with its meaning, and the measured effect of other values."""
    rows = results.get("camera_ablation", {}).get("rows", {})
    lines = []
    for name, *line in numbers_of(CAMERAS):
        changes = (
            f"{label.partition(' = ')[2]}: "
            + " / ".join(f"{row[key]:+.2f} ± {row[f'{key}_interval']:.2f}" for key in ("auc5", "brier"))
            for label, row in rows.items()
            if label.startswith(f"{name} = ")
        )
        lines.append([f"`{name}`", *line, "; ".join(changes)])
    return table(["number", "value", "meaning", "other values: change of AUC@5 / Brier score"], lines)


def numbers_of(record: Tuning | CameraTuning) -> Iterator[list[str]]:
    """Yield name, value and meaning of every number of a record."""
    text = str(type(record).__doc__)
    meanings = dict(re.findall(r"^ {8}(\w+): (.+?)(?=^ {8}\w+: |\Z)", text, re.MULTILINE | re.DOTALL))
    for each in fields(record):
        value = getattr(record, each.name)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        yield [each.name, shown, " ".join(meanings[each.name].split()).rstrip(".;")]


def effects(name: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the effects of other values of a number."""
    from caransac_lab.bench.studies.ablation import base_of

    for label, row in rows.items():
        if label.startswith(f"{name} = "):
            changes = (row[key] - rows[base_of(label)][key] for key in ("auc5", "auc1"))
            yield f"{label.partition(' = ')[2]}: " + " / ".join(f"{change:+.2f}" for change in changes)


def worked_pair(results: Results) -> str:
    """One estimate from start to end."""
    from caransac_lab.bench.studies.worked_pair import worked_answer, worked_table

    content = results["worked_pair"]
    return f"{worked_table(content)}\n{worked_answer(content)}"


def paper_results(results: Results) -> str:
    """The paper's own method compared with the others, for poses and fundamental matrices."""
    rows = {(row["problem"], row["dataset"], row["method"]): row for row in results["paper"]["rows"]}
    columns = [(problem, name) for problem in "EF" for name in DATA if (problem, name, PRESET) in rows]
    labels = {
        f"{PRESET}, E": "`Options.paper()`; F: fine-tuned for F",
        f"{PRESET} (E)": "`Options.paper()`, F with the weights for E",
        "CA-RANSAC": "default, all 1024 hypotheses",
    }
    lines = []
    for method in METHODS:
        cells = [paper_cell(rows.get((*column, method))) for column in columns]
        lines.append([labels.get(method, labels.get(f"{method}, E", method)), *cells])
    found = [row for (problem, name, method), row in rows.items() if (problem, name) in columns and method in METHODS]
    noise = [
        max(row["figures"]["AUC5"][1] for row in found if (row["problem"], row["dataset"]) == column)
        for column in columns
    ]
    lines.append(["*largest deviation of AUC@5 over seeds*", *(f"{value:.1f}" for value in noise)])
    heads = [f"{DATA[name]}, {problem}, {rows[problem, name, PRESET]['pairs']} pairs" for problem, name in columns]
    return table(["AUC@5° / AUC@1°", *heads], lines)


def paper_cell(row: dict[str, Any] | None) -> str:
    """Format the accuracy of a row; empty without a row."""
    return "" if row is None else f"{row['figures']['AUC5'][0]:.1f} / {row['figures']['AUC1'][0]:.1f}"


def paper_ablations(results: Results) -> str:
    """Ablations and numbers of iterations of the paper's method, compared with the paper's figures."""
    lines = []
    for name, methods in (
        ("table-1", (PRESET, *ABLATIONS)),
        ("table-7", (*ROUNDS[:2], f"{PRESET} 4x256", ROUNDS[2])),
    ):
        for method in methods:
            row = find(results["paper"]["rows"], ROOTSIFT, "E", PRESET if method.endswith("4x256") else method)
            here = [f"{row['figures'][key][0]:.1f} ± {row['figures'][key][1]:.1f}" for key in ("AUC5", "AUC1")]
            label = "full" if method == PRESET else method.removeprefix(f"{PRESET} ")
            paper = [f"{value:.1f}" for value in PAPER_TABLES[name].rows[method][:2]]
            lines.append([name.replace("-", " "), label, *here, *paper])
    return table(["", "", "here, AUC@5", "AUC@1", "paper, AUC@5", "AUC@1"], lines)


def paper_filters(results: Results) -> str:
    """Filters by themselves, before an estimator, and as side information of the paper's method."""
    lines = []
    for method in (*FILTERS, PRESET, "LM-LO"):
        row = find(results["paper"]["rows"], ROOTSIFT, "E", method)
        figures = (row["figures"][key] for key in ("AUC5", "AUC1"))
        lines.append([f"`{method}`", *(f"{mean:.1f} ± {deviation:.1f}" for mean, deviation in figures)])
    return table(["", "AUC@5", "AUC@1"], lines)


def paper_first_scenes(results: Results) -> str:
    """The pairs that the weights of the paper's authors were tested on."""
    rows = [row for row in results["paper"]["rows"] if row["dataset"].endswith(FIRST)]
    if not rows:
        raise KeyError(FIRST)
    lines = [[f"`{row['method']}`", paper_cell(row)] for row in rows]
    return table(["", "AUC@5° / AUC@1°"], [*lines, ["the paper's method with the weights of its authors", AUTHORS]])


def paper_orders(results: Results) -> str:
    """Agreement of the order of our figures with the paper's tables."""
    return orders_table(results["paper"]["rows"])


def paper_differences(results: Results) -> str:
    """Gain of each difference between the paper and the default."""
    return differences_table(results["paper"]["differences"])


def paper_weights(results: Results) -> str:
    """Training of the weights of the paper's method, from their model cards."""
    del results  # the cards are beside the weights
    lines = []
    for name in ("paper", "paper-c", "paper-f", "paper-with-filter"):
        card = json.loads(weights_path(find_weights(name)).with_suffix(".json").read_text())
        found, recipe = card["validation"], card["recipe"]
        figures = [f"{found[key]:.3f}" for key in ("prior", "posterior")] + [f"{card['alpha']:.2f}"]
        start = recipe["start"] or "at random"
        lines.append([f"`{name}`", start, str(card["steps"]), f"{recipe['learning_rate']:g}", *figures])
    head = ["", "started from", "further steps of 16 pairs", "learning rate"]
    return table([*head, "entropy before any model", "after the last round", "alpha"], lines)


def index(results: Results) -> str:
    """All files of results."""
    lines = []
    for name, content in results.items():
        made = content["made"]
        lines.append([f"[{name}]({name}.md)", f"`{made['command']}`", f"{made['commit']}", made["instruction_set"]])
    return table(["result", "command", "commit", "instruction set"], lines)


# Every function that converts results to a text is a table.
TABLES: dict[str, Callable[[Results], str]] = {
    name.replace("_", "-"): make
    for name, make in tuple(globals().items())
    if getattr(make, "__annotations__", None) == {"results": "Results", "return": "str"}
}


def read_results(folder: Path) -> Results:
    """Read all result files by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def texts_of_results(folder: Path, results: Results) -> dict[Path, str]:
    """Return the tables beside the result files."""
    texts = {}
    for name, content in results.items():
        texts[folder / f"{name}.md"] = load_study(name).as_markdown(content) + footer(content)
    return texts


def fill(text: str, results: Results) -> str:
    """Return a document with updated tables."""
    return MARKED.sub(lambda found: f"{found[1]}\n{table_of(found[2], results)}\n{found[3]}", text)


def table_of(name: str, results: Results) -> str:
    """Return a table by name, or a line that says that the files have no data for it."""
    try:
        return TABLES[name](results).strip("\n") + "\n"
    except KeyError as error:
        if name not in TABLES:
            raise SystemExit(f"no table {name!r}; there are {', '.join(TABLES)}") from error
        return f"*Not measured for this version yet ({error.args[0]}).*\n"


def texts_of_documents(results: Results) -> dict[Path, str]:
    """Return the documents that contain tables."""
    paths = [path for pattern in DOCUMENTS for path in sorted(CLONE.glob(pattern))]
    texts = {path: path.read_text() for path in paths}
    return {path: fill(text, results) for path, text in texts.items() if MARKED.search(text)}


def write_tables(results_folder: Path = RESULTS, *, check: bool = False) -> list[Path]:
    """Write the tables beside the results, and those of the documents if the results are the published ones.

    Args:
        results_folder: folder of the results.
        check: whether to write nothing.

    Returns:
        The files whose tables differed.
    """
    results = read_results(results_folder)
    texts = texts_of_results(results_folder, results)
    if results_folder == RESULTS:
        texts |= texts_of_documents(results)
    different = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    for path in [] if check else different:
        with replacing(path) as temporary:
            temporary.write_text(texts[path])
    return different

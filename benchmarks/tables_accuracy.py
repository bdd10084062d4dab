"""Tables of the documents about accuracy: next to the peers, with other cameras and lenses, of absolute poses."""

from __future__ import annotations

from collections.abc import Iterator

from published import table
from row_labels import label as in_words
from table_cells import DATA, Results, data_label, figure_cell, set_label

from caransac.bench.paper import PRESET

KNOWN = {
    "CA-RANSAC, early stop": "caransac, default: CA-RANSAC, stops early",
    "CA-RANSAC": "caransac, all 1024 hypotheses",
    PRESET: "caransac, the paper's own algorithm: `Options.paper()`",
    "LM-LO": "caransac, classical: LM-LO",
    "PoseLib PROSAC": "PoseLib, PROSAC",
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


OWN_METHODS = ("CA-RANSAC", "LM-LO", "ContextFilter")  # what the names of rows that are no peer's begin with
DEFAULT = "CA-RANSAC, early stop"
MOST_NAMED = 3  # peers that a cell names
BEST_THRESHOLD = ("PoseLib PROSAC", "OpenCV USAC_DEFAULT")

Figures = tuple[float, float, float]


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
    """The largest AUCs and the shortest time, as they are printed."""
    auc5, auc1, ms = zip(*rows, strict=True)
    return f"{max(auc5):.1f}", f"{max(auc1):.1f}", f"{min(ms):.1f}"


def marked(row: tuple[float, float, float], best: tuple[str, str, str]) -> str:
    """Accuracy and time for readers, the best ones bold."""
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
    """Expected calibration errors for readers, by data set."""
    known = [f"{error:.2f}" for error in errors if error is not None]
    return ", ".join(known) if known else "no confidence"


def focal_scenes(results: Results) -> str:
    """Focal lengths pooled over real scenes, and poses with them."""
    from focal_scenes import describe

    tables = results["focal_scenes"]["tables"]
    lines = (
        describe(f"{DATA.get(name, name)}, {scene}", row)
        for name, rows in tables.items()
        for scene, row in rows.items()
    )
    return table(["", "pairs that determine it", "focal error", "unknown", "pooled", "true cameras"], lines)


def lenses(results: Results) -> str:
    """Poses through lenses of unknown distortion, RootSIFT."""
    from lenses import cell_text

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
    """Who is ahead by more than the least, the farthest first; of a method's variants only the best."""
    ahead: dict[str, float] = {}
    for name, lead in sorted(leads.items(), key=lambda each: -each[1]):
        if lead >= least:
            ahead.setdefault(name.partition(", ")[0], lead)
    named = [f"{name} {text.format(lead)}" for name, lead in list(ahead.items())[:MOST_NAMED]]
    more = len(ahead) - MOST_NAMED
    return ", ".join(named + ([f"and {more} more"] if more > 0 else [])) or "none"


def comparisons(results: Results) -> Iterator[tuple[str, Figures, dict[str, Figures]]]:
    """What was compared, figures of the default, and those of the peers; AUC@5, AUC@1 and milliseconds."""
    for problem, title in (("E", "pose"), ("F", "fundamental matrix")):
        for data, label in DATA.items():
            rows = {
                row["method"]: (row["figures"]["AUC5"][0], row["figures"]["AUC1"][0], row["ms"])
                for row in results["peers"]["rows"]
                if (row["problem"], row["dataset"]) == (problem, data)
            }
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
    """The default and the peers among some rows; nothing if the default is not among them."""
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
    """The automatic threshold next to fixed ones, by the noise added; images as they are."""
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
    """Thresholds tuned on other scenes, and what they give."""
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
    """Rendered scenes, by what is known of the cameras: right answers."""
    scenes = results["any_scene"]["scenes"]
    told = list(next(iter(scenes.values())))
    cells = (
        [scene, *(f"{row['right']} of {row['answers']}" if (row := rows.get(each)) else "" for each in told)]
        for scene, rows in scenes.items()
    )
    return table(["right answers", *(in_words("any_scene", each) for each in told)], cells)

"""The tables of the documents: one function for each, from the files of results to Markdown.

A function raises KeyError where the files have nothing for its table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from published import table

from caransac.bench.paper import PRESET
from caransac.learned.weights_file import weights_path
from caransac.metrics import FAILURE_DEG
from caransac.tuning import DEFAULT_TUNING, Tuning

Results = dict[str, dict[str, Any]]

DATA = {"rootsift/val": "RootSIFT", "aliked/val": "ALIKED", "orb8k/val": "ORB"}
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
DOUBTFUL = {
    "doubtful 5%": "caransac, the doubt stated",
    "given 5%": "caransac, told the wrong one as if exact",
    "unknown": "caransac, cameras unknown, image sizes given",
    "PoseLib shared focal": "PoseLib, one unknown focal length",
}
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


def headline(results: Results) -> str:
    """Accuracy, time and calibration next to the peers: cameras known, doubtful, unknown."""
    names = [name for name in DATA if any(row["dataset"] == name for row in results["peers"]["rows"])]
    rows = {(row["dataset"], row["method"]): row for row in results["peers"]["rows"] if row["problem"] == "E"}
    figures = {
        key: (row["figures"]["AUC5"][0], row["figures"]["AUC1"][0], row["ms"])
        for key, row in rows.items()
        if key[1] in KNOWN
    }
    best = {name: best_of([values for (data, _), values in figures.items() if data == name]) for name in names}
    lines = [["*Cameras known*", *[""] * (len(names) + 1)]]
    for method, label in KNOWN.items():
        if any((name, method) in figures for name in names):
            cells = [marked(figures[name, method], best[name]) if (name, method) in figures else "" for name in names]
            lines.append([label, *cells, known_calibration(results, method, names)])
    focal = results["focal"]["tables"]
    lines.append(["*Focal length off by 5 %, or unknown*", *[""] * (len(names) + 1)])
    for row_name, label in DOUBTFUL.items():
        found = [focal[name]["rows"].get(row_name) if name in focal else None for name in names]
        cells = ["" if row is None else figure_cell(row["AUC5"], row["AUC1"], row["ms"]) for row in found]
        errors = [row["confidence_calibration_error"] for row in found if row is not None]
        lines.append([label, *cells, calibration_cell(errors)])
    pairs = {row["dataset"]: row["pairs"] for row in results["peers"]["rows"]}
    header = ["pose: AUC@5° / AUC@1°, ms", *(f"{DATA[name]}, {pairs[name]} pairs" for name in names)]
    return table([*header, "calibration error"], lines)


def best_of(rows: list[tuple[float, float, float]]) -> tuple[str, str, str]:
    """The largest AUCs and the shortest time, as they are printed."""
    auc5, auc1, ms = zip(*rows, strict=True)
    return f"{max(auc5):.1f}", f"{max(auc1):.1f}", f"{min(ms):.1f}"


def marked(row: tuple[float, float, float], best: tuple[str, str, str]) -> str:
    """Accuracy and time for readers, the best ones bold."""
    texts = (f"{value:.1f}" for value in row)
    auc5, auc1, ms = (f"**{text}**" if text == wanted else text for text, wanted in zip(texts, best, strict=True))
    return f"{auc5} / {auc1}, {ms}"


def figure_cell(auc5: float, auc1: float, ms: float | None) -> str:
    """Accuracy and time for readers."""
    return f"{auc5:.1f} / {auc1:.1f}" + ("" if ms is None else f", {ms:.1f}")


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


def verification(results: Results) -> str:
    """Verification of a database next to COLMAP."""
    columns = ("pairs_per_second", "cpu_ms_per_pair", "recall", "precision")
    lines = ([tool, *(str(row[name]) for name in columns)] for tool, row in results["verification"]["rows"].items())
    header = ["", "pairs per second", "processor ms per pair", "right matches found", "found ones that are right"]
    return table(header, lines)


def reconstruction(results: Results) -> str:
    """COLMAP's mapper after either verification."""
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
    rows = results["focal_pooling"]["means"]
    return table(
        ["", *columns.values()], ([tool, *(number(row.get(c)) for c in columns)] for tool, row in rows.items())
    )


def number(value: float | None) -> str:
    """A number for readers; empty where there is none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.2f}"


def focal_scenes(results: Results) -> str:
    """Focal lengths pooled over real scenes, and poses with them."""
    from focal_scenes import describe

    tables = results["focal_scenes"]["tables"]
    lines = (
        describe(f"{DATA.get(name, name)}, {scene}", row)
        for name, rows in tables.items()
        for scene, row in rows.items()
    )
    return table(["", "pairs that show it", "focal error", "unknown", "pooled", "true cameras"], lines)


def photos(results: Results) -> str:
    """Large photographs by the ways to match them."""
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


def package(results: Results) -> str:
    """Size of the wheel, times of import."""
    content = results["package"]
    lines = [[name, f"{ms:.0f} ms"] for name, ms in content["ms"].items()]
    for name, sizes in content["wheels"].items():
        lines.append([f"`{name}`", f"{sizes['packed'] / 1e6:.2f} MB, unpacked {sizes['unpacked'] / 1e6:.2f} MB"])
    return table(["", "cost"], lines)


def calibration(results: Results) -> str:
    """Calibration of probabilities and confidences."""
    lines = []
    for data, rows in results["calibration"]["tables"].items():
        for label, row in rows.items():
            if "ECE" in row:
                said = [f"{row[name]:.3f}" for name in ("mean said", "mean true", "ECE")]
                lines.append([DATA.get(data, data), label, f"{row['count']:,}", *said])
    return table(["data", "", "count", "mean said", "mean true", "calibration error"], lines)


def unrelated(results: Results) -> str:
    """Confidences of pairs of unrelated images."""
    lines = [
        [data, label, str(row["count"]), str(row["above 0.5"])]
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


def faults(results: Results) -> str:
    """Injected faults, all commands together."""
    return table(*totals(results["faults"]["commands"]))


def interrupts(results: Results) -> str:
    """Interrupted commands."""
    return table(*totals(results["interrupts"]["commands"]))


def totals(rows: dict[str, dict[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table of counts by command."""
    header = ["", *next(iter(rows.values()))]
    return header, [[name, *map(str, row.values())] for name, row in rows.items()]


def ablation(results: Results) -> str:
    """What every stage buys."""
    from ablation import STAGES, problem_table

    return "\n".join(
        f"{problem}:\n\n{problem_table(rows, list(STAGES))}" for problem, rows in results["ablation"]["rows"].items()
    )


def tuning(results: Results) -> str:
    """Every tuned number with its meaning, and what other values cost, where that was measured."""
    rows = results.get("ablation", {}).get("rows", {}).get("E", {})
    meanings = dict(re.findall(r"^ {8}(\w+): (.+?)(?=^ {8}\w+: |\Z)", str(Tuning.__doc__), re.MULTILINE | re.DOTALL))
    lines = []
    for each in fields(Tuning):
        value = getattr(DEFAULT_TUNING, each.name)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        meaning = " ".join(meanings[each.name].split()).rstrip(".")
        lines.append([f"`{each.name}`", shown, meaning, "; ".join(effects(each.name, rows))])
    return table(["number", "value", "meaning", "other values: change of AUC@5 / AUC@1, E"], lines)


def effects(name: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """What other values of a number change."""
    for label, row in rows.items():
        if label.startswith(f"{name} = "):
            changes = (row[key] - rows["default"][key] for key in ("auc5", "auc1"))
            yield f"{label.partition(' = ')[2]}: " + " / ".join(f"{change:+.2f}" for change in changes)


def lenses(results: Results) -> str:
    """Poses through lenses that nobody told, RootSIFT."""
    from lenses import cell_text

    rows = results["lenses"]["tables"]["rootsift/val"]["rows"]
    k1s = list(next(iter(rows.values())))
    return table(
        ["", *(f"k1 = {k1}" for k1 in k1s)], ([name, *(cell_text(row[k1]) for k1 in k1s)] for name, row in rows.items())
    )


def absolute(results: Results) -> str:
    """Absolute poses next to the peers, RootSIFT, by the number of reference images."""
    tables = {name: found for name, found in results["absolute"]["tables"].items() if name.startswith("rootsift")}
    labels = next(iter(tables.values()))["rows"]
    cells = (
        [
            label,
            *(figure_cell(*(found["rows"][label][key] for key in ("AUC5", "AUC1", "ms"))) for found in tables.values()),
        ]
        for label in labels
    )
    header = [f"{name.partition(', ')[2]}, {found['queries']} queries" for name, found in tables.items()]
    return table(["AUC@5° / AUC@1°, ms", *header], cells)


def paper_results(results: Results) -> str:
    """The paper's own method beside the others, poses and fundamental matrices."""
    from paper_tables import METHODS

    rows = {(row["problem"], row["dataset"], row["method"]): row for row in results["paper"]["rows"]}
    columns = [(problem, name) for problem in "EF" for name in DATA if (problem, name, PRESET) in rows]
    labels = {
        f"{PRESET}, E": "`Options.paper()`; F: fine-tuned for F",
        f"{PRESET} (E)": "`Options.paper()`, F by the weights for E",
        "CA-RANSAC": "default, all 1024 hypotheses",
    }
    lines = []
    for method in METHODS:
        cells = [paper_cell(rows.get((*column, method))) for column in columns]
        lines.append([labels.get(method, labels.get(f"{method}, E", method)), *cells])
    found = [row for (problem, name, _), row in rows.items() if (problem, name) in columns]
    noise = [
        max(row["figures"]["AUC5"][1] for row in found if (row["problem"], row["dataset"]) == column)
        for column in columns
    ]
    lines.append(["*largest deviation of AUC@5 over seeds*", *(f"{value:.1f}" for value in noise)])
    heads = [f"{DATA[name]}, {problem}, {rows[problem, name, PRESET]['pairs']} pairs" for problem, name in columns]
    return table(["AUC@5° / AUC@1°", *heads], lines)


def paper_cell(row: dict[str, Any] | None) -> str:
    """Accuracy of a row for readers; empty without one."""
    return "" if row is None else f"{row['figures']['AUC5'][0]:.1f} / {row['figures']['AUC1'][0]:.1f}"


def paper_ablations(results: Results) -> str:
    """Ablations and numbers of iterations of the paper's method, beside the paper's figures."""
    from paper_tables import ABLATIONS, ROOTSIFT, ROUNDS, find

    from caransac.bench.paper import TABLES as PAPER_TABLES

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
    """Filters alone, as filters and as side information of the paper's method."""
    from paper_tables import FILTERS, ROOTSIFT, find

    lines = []
    for method in (*FILTERS, PRESET, "LM-LO"):
        row = find(results["paper"]["rows"], ROOTSIFT, "E", method)
        figures = (row["figures"][key] for key in ("AUC5", "AUC1"))
        lines.append([f"`{method}`", *(f"{mean:.1f} ± {deviation:.1f}" for mean, deviation in figures)])
    return table(["", "AUC@5", "AUC@1"], lines)


def paper_first_scenes(results: Results) -> str:
    """The pairs on which the weights of the paper's authors were tried."""
    from paper_tables import AUTHORS, FIRST

    rows = [row for row in results["paper"]["rows"] if row["dataset"].endswith(FIRST)]
    if not rows:
        raise KeyError(FIRST)
    lines = [[f"`{row['method']}`", paper_cell(row)] for row in rows]
    return table(["", "AUC@5° / AUC@1°"], [*lines, ["the paper's method by the weights of its authors", AUTHORS]])


def paper_orders(results: Results) -> str:
    """Where figures come in the order of the paper's tables, and where not."""
    from paper_tables import orders_table

    return orders_table(results["paper"]["rows"])


def paper_differences(results: Results) -> str:
    """What each difference between the paper and the default buys."""
    from paper_tables import differences_table

    return differences_table(results["paper"]["differences"])


def paper_weights(results: Results) -> str:
    """How the weights of the paper's method were trained, from their cards."""
    del results  # the cards lie beside the weights
    lines = []
    for name in ("paper", "paper-c", "paper-f", "paper-with-filter"):
        card = json.loads(weights_path(name).with_suffix(".json").read_text())
        found, recipe = card["validation"], card["recipe"]
        figures = [f"{found[key]:.3f}" for key in ("prior", "posterior")] + [f"{card['alpha']:.2f}"]
        start = recipe["start"] or "at random"
        lines.append([f"`{name}`", start, str(card["steps"]), f"{recipe['learning_rate']:g}", *figures])
    head = ["", "started from", "further steps of 16 pairs", "learning rate"]
    return table([*head, "entropy before any model", "after the last round", "alpha"], lines)


def worked_pair(results: Results) -> str:
    """One answer from start to end."""
    from worked_pair import worked_answer, worked_table

    content = results["worked_pair"]
    return f"{worked_table(content)}\n{worked_answer(content)}"


def index(results: Results) -> str:
    """All files of results."""
    lines = []
    for name, content in results.items():
        made = content["made"]
        lines.append([f"[{name}]({name}.md)", f"`{made['command']}`", f"{made['commit']}", made["instruction_set"]])
    return table(["result", "command", "commit", "instruction set"], lines)


TABLES: dict[str, Callable[[Results], str]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        headline,
        speed_pairs,
        speed_ratios,
        speed_leads,
        speed_parts,
        speed_kernels,
        speed_threads,
        speed_scale,
        options_for_time,
        verification,
        reconstruction,
        focal_pooling,
        focal_scenes,
        photos,
        package,
        calibration,
        unrelated,
        hard_scenes,
        faults,
        interrupts,
        ablation,
        tuning,
        lenses,
        absolute,
        paper_results,
        paper_ablations,
        paper_filters,
        paper_first_scenes,
        paper_orders,
        paper_differences,
        paper_weights,
        worked_pair,
        index,
    )
}

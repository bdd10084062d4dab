"""Tables of the documents about the paper's own method."""

from __future__ import annotations

import json
from typing import Any

from paper_rows import (
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
from published import table
from table_cells import DATA, Results

from caransac.bench.paper import PRESET, TABLES
from caransac.learned.weights_file import weights_path


def paper_results(results: Results) -> str:
    """The paper's own method beside the others, poses and fundamental matrices."""
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
    found = [row for (problem, name, method), row in rows.items() if (problem, name) in columns and method in METHODS]
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
    lines = []
    for name, methods in (
        ("table-1", (PRESET, *ABLATIONS)),
        ("table-7", (*ROUNDS[:2], f"{PRESET} 4x256", ROUNDS[2])),
    ):
        for method in methods:
            row = find(results["paper"]["rows"], ROOTSIFT, "E", PRESET if method.endswith("4x256") else method)
            here = [f"{row['figures'][key][0]:.1f} ± {row['figures'][key][1]:.1f}" for key in ("AUC5", "AUC1")]
            label = "full" if method == PRESET else method.removeprefix(f"{PRESET} ")
            paper = [f"{value:.1f}" for value in TABLES[name].rows[method][:2]]
            lines.append([name.replace("-", " "), label, *here, *paper])
    return table(["", "", "here, AUC@5", "AUC@1", "paper, AUC@5", "AUC@1"], lines)


def paper_filters(results: Results) -> str:
    """Filters alone, as filters and as side information of the paper's method."""
    lines = []
    for method in (*FILTERS, PRESET, "LM-LO"):
        row = find(results["paper"]["rows"], ROOTSIFT, "E", method)
        figures = (row["figures"][key] for key in ("AUC5", "AUC1"))
        lines.append([f"`{method}`", *(f"{mean:.1f} ± {deviation:.1f}" for mean, deviation in figures)])
    return table(["", "AUC@5", "AUC@1"], lines)


def paper_first_scenes(results: Results) -> str:
    """The pairs on which the weights of the paper's authors were tried."""
    rows = [row for row in results["paper"]["rows"] if row["dataset"].endswith(FIRST)]
    if not rows:
        raise KeyError(FIRST)
    lines = [[f"`{row['method']}`", paper_cell(row)] for row in rows]
    return table(["", "AUC@5° / AUC@1°"], [*lines, ["the paper's method by the weights of its authors", AUTHORS]])


def paper_orders(results: Results) -> str:
    """Where figures come in the order of the paper's tables, and where not."""
    return orders_table(results["paper"]["rows"])


def paper_differences(results: Results) -> str:
    """What each difference between the paper and the default buys."""
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

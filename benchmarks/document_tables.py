"""The tables of the documents: a function for each, from the files of results to Markdown.

A function raises KeyError where the files have nothing for its table. A document shows the table of the function
`speed_pairs` between the lines `<!-- table: speed-pairs -->` and `<!-- end -->`.
"""

from __future__ import annotations

from collections.abc import Callable

import tables_accuracy as accuracy
import tables_colmap as colmap
import tables_method as method
import tables_paper as paper
import tables_reliability as reliability
import tables_speed as speed
from published import table
from table_cells import Results


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
        accuracy.headline,
        accuracy.losses,
        accuracy.focal_scenes,
        accuracy.lenses,
        accuracy.absolute,
        accuracy.homographies,
        accuracy.thresholds,
        accuracy.tuned,
        accuracy.robustness,
        accuracy.any_scene,
        speed.speed_pairs,
        speed.speed_ratios,
        speed.speed_leads,
        speed.speed_parts,
        speed.speed_kernels,
        speed.speed_threads,
        speed.speed_scale,
        speed.options_for_time,
        speed.dense,
        speed.package,
        colmap.verification,
        colmap.reconstruction,
        colmap.real_databases,
        colmap.focal_pooling,
        colmap.photos,
        colmap.third_party,
        reliability.calibration,
        reliability.unrelated,
        reliability.hard_scenes,
        reliability.hard_cases,
        reliability.covariance,
        reliability.faults,
        reliability.hostile_databases,
        reliability.interrupts,
        method.ablation,
        method.tuning,
        method.camera_tuning,
        method.worked_pair,
        paper.paper_results,
        paper.paper_ablations,
        paper.paper_filters,
        paper.paper_first_scenes,
        paper.paper_orders,
        paper.paper_differences,
        paper.paper_weights,
        index,
    )
}

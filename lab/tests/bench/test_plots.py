"""The plots: their content, and readable labels."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Annotation, Text

from caransac_lab.bench import plots
from caransac_lab.bench.breakdown import PARTS
from caransac_lab.bench.plots import draw_inlier_ratios, draw_points, draw_times, pareto_front


def record(method, ms, auc5, bins=(), crashes=0):
    """Return the entries of a result row that plots need."""
    found = [{"from": low, "to": high, "AUC5": auc5, "count": count} for low, high, count in bins]
    figures = {"AUC5": {"mean": auc5, "std": 0.0}}
    return {"method": method, "ms": ms, "figures": figures, "by_inlier_ratio": found, "crashes": crashes}


def names_in(figure):
    return [text for text in figure.axes[0].texts if isinstance(text, Annotation)]


def test_the_pareto_front_has_the_unbeaten_points():
    assert pareto_front([(2, 5), (1, 3), (3, 4), (2, 6), (4, 7)]) == [(1, 3), (2, 6), (4, 7)]


def test_every_point_has_the_name_of_its_method():
    records = [record("LM-LO", 7.0, 88.7), record("LM-LO 10k", 64.0, 89.2), record("COLMAP", None, 87.7)]
    figure = draw_points(records, "ms", "milliseconds per pair", "E")
    assert {text.get_text(): text.xy for text in names_in(figure)} == {"LM-LO": (7.0, 88.7), "LM-LO 10k": (64.0, 89.2)}
    drawn = np.concatenate([line.get_xydata() for line in figure.axes[0].lines if line.get_marker() == "o"])
    assert sorted(map(tuple, drawn)) == [(7.0, 88.7), (64.0, 89.2)]
    assert figure.axes[0].get_legend() is None


def test_names_do_not_overlap_each_other_or_points():
    rng = np.random.default_rng(3)
    values = np.stack([rng.uniform(7, 60, 16), rng.uniform(86, 90, 16)], axis=1)
    values[1] = values[0]  # two methods at the same position
    figure = draw_points([record(f"method {k}", *value) for k, value in enumerate(values)], "ms", "ms", "E")
    figure.draw_without_rendering()
    renderer, axes = figure.canvas.get_renderer(), figure.axes[0]
    boxes = [Text.get_window_extent(text, renderer) for text in names_in(figure)]
    assert len(boxes) == 16
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    points = axes.transData.transform(values)
    assert not any(box.contains(*point) for box in boxes for point in points)
    frame = axes.get_window_extent()
    assert all(frame.contains(*corner) for box in boxes for corner in (box.min, box.max))


def test_inlier_ratios_come_with_the_number_of_pairs():
    bins = ((0.0, 0.1, 24), (0.3, 0.5, 6))
    lost = record("B", 1.0, 50.0, ((0.0, 0.1, 30),), crashes=6)  # crashed runs have no inlier ratio
    figure = draw_inlier_ratios([lost, record("A", 1.0, 60.0, bins)], 2, "E")
    (above,) = figure.axes[0].child_axes
    assert above.get_xticks() == pytest.approx([0.05, 0.4])
    assert [text.get_text() for text in above.get_xticklabels()] == ["12", "3"]
    assert above.get_xlabel() == "pairs"


@pytest.mark.slow
def test_plots_are_saved_in_two_formats_and_reproducible(tmp_path):
    for name in ("first", "second"):
        figure = draw_points([record("LM-LO", 7.0, 88.7)], "ms", "ms", "E")
        (tmp_path / name).mkdir()
        plots.save(figure, tmp_path / name / "pareto.png")
    assert (tmp_path / "first" / "pareto.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "first" / "pareto.svg").read_text()
    assert "<svg" in drawn and "LM-LO" in drawn
    assert drawn == (tmp_path / "second" / "pareto.svg").read_text()


def test_logarithmic_axes_have_numbers_in_full():
    records = [
        {"method": name, "ms": ms, "figures": {"AUC5": {"mean": auc}}}
        for name, ms, auc in (("a", 2.5, 40), ("b", 60, 50))
    ]
    figure = plots.draw_points(records, "ms", "milliseconds per pair", "E")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    shown = {text.get_text() for text in axes.get_xticklabels(which="both")} - {""}
    assert {"5", "10", "20", "50"} <= shown
    assert all(float(text) > 0 for text in shown)  # not written as powers of ten


@pytest.mark.parametrize("count", [1, 2, 12, 40])
def test_there_is_room_for_every_legend(count):
    """Without enough room, matplotlib warns that axes have collapsed, and warnings are errors here."""
    parts = {"parts_ms": dict.fromkeys(PARTS, 1.0)}
    records = [record(f"method {k}", 17.0, 50.0 + k, ((0.2, 0.4, 9),)) | parts for k in range(count)]
    for figure in (draw_times(records, "E"), draw_inlier_ratios(records, 1, "E")):
        figure.draw_without_rendering()
        axes, renderer = figure.axes[0], figure.canvas.get_renderer()
        width, height = axes.get_window_extent(renderer).size / figure.dpi
        assert width > 2 and height > 0.5  # inches
        (legend,) = [each for each in (axes.get_legend(), *figure.legends) if each is not None]
        box = legend.get_window_extent(renderer)
        assert all(figure.bbox.contains(*corner) for corner in (box.min, box.max))
        assert not box.overlaps(axes.get_window_extent(renderer))


def test_every_part_of_the_time_has_its_own_colour():
    figure = draw_times([record("A", 17.0, 50.0) | {"parts_ms": dict.fromkeys(PARTS, 1.0)}], "E")
    colours = [patch.get_facecolor() for container in figure.axes[0].containers for patch in container]
    assert len(colours) == len(PARTS)
    assert all(np.abs(np.subtract(one, two)).max() > 0.06 for one, two in combinations(colours, 2))

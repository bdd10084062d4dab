"""The tables: content, marked cells, and width."""

import pytest

from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.plan import Plan
from caransac_lab.bench.protocol import BenchMethod, Outcome
from caransac_lab.bench.publication import collect_results, format_markdown
from caransac_lab.bench.tables import as_markdown, count, fit, make_tables


def results(errors, ms=(None, None), scenes=("a",), seeds=1):
    """Create published results of two methods. Each has one error in degrees for all pairs, and a time."""
    rows = []
    for name, error, time in zip(("LM-LO", "CA-RANSAC"), errors, ms, strict=True):
        outcome = Outcome(status="found", rotation_deg=error, translation_deg=0.0, ms=time)
        timed = [] if time is None else [outcome]
        outcomes = [{(scene, "0"): outcome for scene in scenes}] * seeds
        rows.append(TableRow("made", BenchMethod(name, None, name), "E", RunSettings(), True, outcomes, timed))
    return collect_results(Plan(sources=("synthetic:1",)), rows, {}, "command")


def column(table, label):
    number = [column.label for column in table.columns].index(label)
    return [row[number] for row in table.rows]


def test_the_best_figures_are_marked_in_either_sense():
    (table,) = make_tables(results((1.0, 0.5), ms=(3.0, 20.0)))
    assert [cell.best for cell in column(table, "AUC@5°")] == [False, True]
    assert [cell.best for cell in column(table, "median")] == [False, True]
    assert [cell.best for cell in column(table, "time")] == [True, False]
    assert not any(cell.best for label in ("method", "hypotheses", "threshold") for cell in column(table, label))


def test_figures_with_equal_text_are_equally_good():
    (table,) = make_tables(results((0.5, 0.5001)))
    assert not any(cell.best for row in table.rows for cell in row)


def test_markdown_is_aligned_and_has_units():
    lines = as_markdown(make_tables(results((1.0, 12.0), ms=(3.0, 1234.5)))[0]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len({tuple(i for i, letter in enumerate(line) if letter == "|") for line in lines}) == 1
    assert (
        "AUC@5°, %" in lines[0] and "median, °" in lines[0] and "time, ms" in lines[0] and "threshold, px" in lines[0]
    )
    assert "**80.0**" in lines[2] and "1.00" in lines[2]


@pytest.mark.parametrize(("scenes", "said"), [(("a",), "(1 pair, 1 scene)"), (("a", "b"), "(2 pairs, 2 scenes)")])
def test_one_is_singular(scenes, said):
    assert f"## E, made {said}" in format_markdown(results((1.0, 2.0), scenes=scenes))
    assert count(0, "pair") == "0 pairs"


@pytest.mark.parametrize("width", [100, 120, 300])
def test_a_terminal_shows_columns_that_fit(width):
    found = results((1.0, 12.0), ms=(3.0, 1234.5))
    lines = [line for line in format_markdown(found, width=width).splitlines() if line.startswith("|")]
    assert max(map(len, lines)) <= width
    assert "AUC@5°, %" in lines[0] and "time, ms" in lines[0] and ("AUC@20° folded" in lines[0]) == (width == 300)
    assert format_markdown(found, width=300) == format_markdown(found)


def test_narrow_terminals_keep_the_main_columns():
    (table,) = make_tables(results((1.0, 2.0)))
    few = fit(table, 40)
    assert [column.label for column in few.columns[:3]] == ["method", "AUC@5°", "AUC@1°"]
    assert not any(column.further for column in few.columns)
    assert all(len(row) == len(few.columns) for row in few.rows)
    assert fit(table, 400) == table

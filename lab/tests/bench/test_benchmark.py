"""Plans, and the choice of methods, thresholds, hypotheses and pairs by a benchmark."""

import json
from dataclasses import replace

import numpy as np
import pytest

from caransac_lab.bench.benchmark import hypotheses_within, take_evenly
from caransac_lab.bench.plan import GROUPS, Plan
from caransac_lab.datasets import open_dataset


@pytest.mark.slow
def test_errors_of_plans_name_the_wrong_or_missing_value():
    with pytest.raises(ValueError, match=r"'posalib'; did you mean 'PoseLib'"):
        Plan(sources=("synthetic",), methods=("posalib",)).choose_methods()
    with pytest.raises(ValueError, match="no data"):
        Plan(sources=())
    with pytest.raises(ValueError, match="seeds"):
        Plan(sources=("synthetic",), seeds=0)
    methods, missing = Plan(sources=("synthetic",), methods=("ablations", "CLNet + LM-LO")).choose_methods()
    assert [method.label for method in methods] == list(GROUPS["ablations"])
    assert list(missing) == ["CLNet + LM-LO"]
    assert "--filter CLNet=FILE" in missing["CLNet + LM-LO"]


@pytest.mark.parametrize("name", ["budget_ms", "max_ratio"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_rules_must_be_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name.replace('_', '-')} must be at least"):
        Plan(sources=("synthetic:2",), **{name: value})


@pytest.mark.slow
def test_thresholds_are_tuned_on_other_data(tmp_path, run_plan):
    plan = Plan(sources=("synthetic:2",), methods=("LM-LO",), tune="synthetic:3:50", iterations=256, timing_pairs=0)
    (row,) = run_plan(plan, tmp_path)
    journal = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()[1:]]
    tuning = {float(key[5]): [] for key, _ in journal if key[0].startswith("tuning")}
    assert len(tuning) > 5
    for key, outcome in journal:
        if key[0].startswith("tuning"):
            error = max(outcome["rotation_deg"], outcome["translation_deg"])
            tuning[float(key[5])].append(max(0.0, 1 - error / 5))
    assert row.settings.max_error_px == max(tuning, key=lambda threshold: np.mean(tuning[threshold]))
    with pytest.raises(ValueError, match="--tune"):
        replace(plan, tune="synthetic:2")


@pytest.mark.slow
def test_a_time_budget_sets_the_hypotheses(tmp_path, run_plan):
    assert hypotheses_within(3.0, {32: 1.0, 64: 2.0, 128: 4.0}) == 96
    assert hypotheses_within(3.0, {32: 5.0}) == 32
    assert hypotheses_within(3.0, {32: 1.0, 64: 2.0}) == 64
    plan = Plan(sources=("synthetic:2",), methods=("LM-LO",), budget_ms=4.0, timing_pairs=0)
    (row,) = run_plan(plan, tmp_path)
    assert row.settings.iterations > 32
    assert row.within_budget
    (again,) = run_plan(plan, tmp_path)
    assert again.settings == row.settings
    (late,) = run_plan(replace(plan, budget_ms=0.1), tmp_path)
    assert not late.within_budget


def test_timing_pairs_are_spread_over_the_data():
    dataset = open_dataset("synthetic:10")
    few = take_evenly(dataset, 3)
    assert few.num_pairs == len(list(few.read())) == 3
    assert [pair.name for pair in few.read()] == ["0000", "0004", "0008"]
    assert take_evenly(dataset, 100).num_pairs == 10

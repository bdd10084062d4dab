"""From outcomes to figures, and the shape of what is published."""

import pytest

from caransac_lab.bench import summary
from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.plan import Plan
from caransac_lab.bench.protocol import BenchMethod, Outcome
from caransac_lab.bench.publication import collect_results


def test_scenes_count_alike_and_seeds_deviate():
    right, wrong = Outcome(status="found", rotation_deg=0.0, translation_deg=0.0), Outcome(status="failed")
    mixed = {("a", str(pair)): right for pair in range(99)} | {("b", "0"): wrong}
    method = BenchMethod("CA-RANSAC", None, "CA-RANSAC")
    row = TableRow("made", method, "E", RunSettings(), True, [mixed, dict.fromkeys(mixed, right)], [])
    assert summary.mean_and_deviation(row)["AUC5"] == {"mean": 75.0, "std": 25.0}


@pytest.mark.slow
def test_published_results_are_checked(tmp_path, run_plan):
    plan = Plan(sources=("synthetic:1",), methods=("LM-LO",), timing_pairs=0)
    result = collect_results(plan, run_plan(plan, tmp_path), {}, "command")
    summary.check(result)
    for broken, place in (
        (result | {"rows": [result["rows"][0] | {"pairs": "many"}]}, r"rows\[0\]\.pairs"),
        (result | {"rows": [result["rows"][0] | {"ms": float("nan")}]}, r"rows\[0\]\.ms"),
        ({name: value for name, value in result.items() if name != "machine"}, "machine"),
        (result | {"versions": {"numpy": 1}}, r"versions\.numpy"),
    ):
        with pytest.raises(ValueError, match=place):
            summary.check(broken)

"""Figures computed from outcomes."""

from caransac_lab.bench import summary
from caransac_lab.bench.benchmark import TableRow
from caransac_lab.bench.contract import RunSettings
from caransac_lab.bench.protocol import BenchMethod, Outcome


def test_scenes_have_equal_weight_and_seeds_give_deviations():
    right, wrong = Outcome(status="found", rotation_deg=0.0, translation_deg=0.0), Outcome(status="failed")
    mixed = {("a", str(pair)): right for pair in range(99)} | {("b", "0"): wrong}
    method = BenchMethod("CA-RANSAC", None, "CA-RANSAC")
    row = TableRow("made", method, "E", RunSettings(), True, [mixed, dict.fromkeys(mixed, right)], [])
    assert summary.mean_and_deviation(row)["AUC5"] == {"mean": 75.0, "std": 25.0}

"""The benchmark: rules, runner, resume, record, command."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from caransac.bench import breakdown, runner, summary
from caransac.bench.adapters import ESTIMATORS
from caransac.bench.benchmark import Benchmark, TableRow, hypotheses_within, take_evenly
from caransac.bench.contract import RunSettings
from caransac.bench.filters import BenchFilter, ratio_filter, saved_filter
from caransac.bench.journal import Journal
from caransac.bench.paper import PHOTOTOURISM, TABLES
from caransac.bench.plan import GROUPS, Plan
from caransac.bench.plots import pareto_front
from caransac.bench.protocol import BenchMethod, Job, Outcome, polish_fundamental, polish_pose, run_job, undistorted
from caransac.bench.publication import collect_results, format_markdown
from caransac.camera import Camera
from caransac.cli import main
from caransac.datasets import Pair, make_synthetic, open_dataset, write_npz
from caransac.geometry import essential_from_pose, fundamental_from_essential, pose_error_deg, rotation_from_vector
from caransac.synthetic import make_pair

FAST = ("LM-LO", "OpenCV USAC_DEFAULT", "CA-RANSAC")


class Silent:
    """An observer that counts, and may interrupt."""

    def __init__(self, interrupt_after=None):
        self.count, self.interrupt_after = 0, interrupt_after

    def begin_stage(self, stage, total):
        pass

    def add_outcome(self, *_):
        self.count += 1
        if self.count == self.interrupt_after:
            raise KeyboardInterrupt


def clean_pair(num_points=200, outlier_ratio=0.3, **given):
    made = make_pair(num_points, outlier_ratio, **given)
    cameras = made.camera1, made.camera2
    return Pair("made", "0", made.points1, made.points2, made.scores, *cameras, made.R, made.t)


def run_plan(plan, folder, observer=None, workers=1):
    with Journal(folder / "journal.jsonl", {"versions": {}}) as journal:
        return Benchmark(plan, journal, observer or Silent(), workers).run()


def accuracy(rows, plan):
    """What must be the same to the digit."""
    result = collect_results(plan, rows, {}, "")
    return [{name: value for name, value in row.items() if name not in ("ms", "parts_ms")} for row in result["rows"]]


def test_ratio_filter_keeps_the_good_ones_best_first():
    pair = clean_pair()
    kept = ratio_filter(0.85).apply(pair)
    assert len(kept.points1) == (pair.scores < 0.85).sum()
    best = np.argmin(pair.scores)
    assert np.array_equal(kept.points1[0], pair.points1[best])
    assert np.all(np.diff(kept.scores) <= 0)
    assert len(ratio_filter(1e-6).apply(pair).points1) == 20
    assert ratio_filter(0.85).apply(replace(pair, scores=None)).scores is None
    confident = ratio_filter(0.85).apply(replace(pair, scores=1 - pair.scores, score_kind="confidence"))
    assert len(confident.points1) == len(pair.points1)
    assert np.array_equal(confident.points1[0], pair.points1[best])


def test_saved_weights_filter_by_pair(tmp_path):
    pair = clean_pair()
    np.savez(tmp_path / "weights.npz", **{"made/0": np.linspace(0, 1, 200)})
    kept = saved_filter(f"mine={tmp_path / 'weights.npz'}:0.5").apply(pair)
    assert np.array_equal(kept.points1, pair.points1[:99:-1])
    with pytest.raises(ValueError, match="no weights of made/1"):
        saved_filter(f"mine={tmp_path / 'weights.npz'}").apply(replace(pair, name="1"))
    for wrong in ("mine", "=x", f"mine={tmp_path / 'nowhere.npz'}", f"mine={tmp_path / 'weights.npz'}:much"):
        with pytest.raises(ValueError, match="--filter"):
            saved_filter(wrong)


def test_final_refinement_improves_a_rough_answer():
    pair = clean_pair(400, 0.2, noise_px=0.2)
    rough = rotation_from_vector([0.0005, -0.0005, 0.0003]) @ pair.R, pair.t
    before = pose_error_deg(*rough, pair.R, pair.t)
    polished = polish_pose(rough, pair)
    assert pose_error_deg(*polished, pair.R, pair.t) < 0.5 * before
    K = pair.camera1.K
    F = polish_fundamental(fundamental_from_essential(essential_from_pose(*rough), K, K), pair)
    truth = fundamental_from_essential(essential_from_pose(pair.R, pair.t), K, K)
    assert abs(np.sum(F * truth) / np.linalg.norm(F) / np.linalg.norm(truth)) > 1 - 1e-4


def test_lenses_are_removed_before_any_method_sees_the_points():
    pair = clean_pair()
    camera = Camera("SIMPLE_RADIAL", (*pair.camera1.params, 0.05), 1024, 768)
    bent = replace(pair, points1=camera.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1)), camera1=camera)
    straight = undistorted(bent)
    assert not straight.camera1.is_distorted
    assert np.abs(straight.points1 - pair.points1).max() < 1e-3
    assert np.allclose(straight.camera1.K, pair.camera1.K)


def test_failures_count_180_degrees_and_folding_ignores_the_sign():
    failed = Outcome(status="failed")
    assert failed.error_deg == failed.folded_error_deg == 180
    reversed_ = Outcome(status="found", rotation_deg=1.0, translation_deg=178.0)
    assert reversed_.error_deg == 178
    assert reversed_.folded_error_deg == pytest.approx(2)
    assert summary.figures([reversed_, failed])["AUC5"] == 0
    assert summary.figures([reversed_, failed])["AUC5 folded"] == pytest.approx(30)
    exact = Outcome(status="found", rotation_deg=0.0, translation_deg=5.0)
    figures = summary.figures([exact])
    assert [figures[name] for name in ("AUC5", "AUC10", "AUC20", "MAP20")] == pytest.approx([0, 50, 75, 100])
    assert set(figures) == set(summary.FIGURES)


def test_a_peer_that_raises_fails_alone(monkeypatch):
    def broken(*_):
        raise RuntimeError("no")

    monkeypatch.setitem(ESTIMATORS, "PoseLib", replace(ESTIMATORS["PoseLib"], run=broken))
    outcome = run_job(Job(BenchMethod("PoseLib", None, "PoseLib"), "E", RunSettings()), clean_pair())
    assert (outcome.status, outcome.error_deg) == ("crashed", 180)


def die(pair):
    """A filter that takes its process along, on some pairs."""
    if pair.name.endswith("1"):
        os._exit(3)
    return np.ones(len(pair.points1))


def test_a_peer_that_dies_harms_no_other(tmp_path):
    plan = Plan(sources=("synthetic:3",), methods=("LM-LO",), filters=(BenchFilter("deadly", die),), timing_pairs=0)
    plain, deadly = run_plan(plan, tmp_path)
    assert plain.method.label == "LM-LO"
    assert [outcome.status for outcome in plain.outcomes[0].values()] == ["found"] * 3
    assert [outcome.status for outcome in deadly.outcomes[0].values()] == ["found", "crashed", "found"]


def test_the_parts_of_a_run_add_up_to_its_time():
    pair = clean_pair()
    for name, filtered, expected in (("CA-RANSAC", False, {"solve", "network"}), ("PoseLib", True, {"filter"})):
        job = Job(BenchMethod(name, ratio_filter(0.85) if filtered else None, name), "E", RunSettings(iterations=512))
        parts = breakdown.parts_ms(job, pair)
        assert expected < set(parts) <= set(breakdown.PARTS)
        assert all(ms >= 0 for ms in parts.values())
    original = breakdown.ca_ransac.likely_inliers
    with breakdown.timing():
        assert breakdown.ca_ransac.likely_inliers is not original
    assert breakdown.ca_ransac.likely_inliers is original


def hang(pair):
    """A filter that never ends, on some pairs."""
    if pair.name.endswith("1"):
        time.sleep(1000)
    return np.ones(len(pair.points1))


def test_a_peer_that_hangs_is_given_up(tmp_path):
    method, outcomes = BenchMethod("LM-LO", BenchFilter("slow", hang), "slow + LM-LO"), {}
    with Journal(tmp_path / "journal.jsonl", {}) as journal:
        runner.run(
            open_dataset("synthetic:3", None),
            [Job(method, "E", RunSettings(iterations=64))],
            journal,
            workers=1,
            on_outcome=lambda key, outcome: outcomes.update({key[2]: outcome.status}),
            time_limit_s=1.0,
        )
    assert [outcomes[name] for name in sorted(outcomes)] == ["found", "crashed", "found"]


def test_interrupted_runs_continue_to_the_same_digits(tmp_path):
    plan = Plan(sources=("synthetic:4",), methods=FAST, iterations=128, seeds=2, timing_pairs=1)
    whole = run_plan(plan, tmp_path / "whole", workers=2)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "halves", Silent(interrupt_after=7))
    path = tmp_path / "halves" / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 8
    path.write_text("".join(lines[:-1]) + lines[-1][:40])  # killed in the middle of a line
    observer = Silent()
    continued = run_plan(plan, tmp_path / "halves", observer)
    assert accuracy(continued, plan) == accuracy(whole, plan)
    assert observer.count == 4 * 3 * 2 + 3
    before = path.read_text()
    assert accuracy(run_plan(plan, tmp_path / "halves"), plan) == accuracy(whole, plan)
    assert path.read_text() == before


def test_results_of_other_versions_are_not_mixed(tmp_path):
    path = tmp_path / "out" / "journal.jsonl"
    Journal(path, {"versions": {"numpy": "1", "poselib": "2"}, "commit": "a"}).close()
    Journal(path, {"versions": {"numpy": "1", "torch": "3"}, "commit": "a"}).close()
    with pytest.raises(ValueError, match="another numpy"):
        Journal(path, {"versions": {"numpy": "2"}, "commit": "a"})
    with pytest.raises(ValueError, match="another commit"):
        Journal(path, {"versions": {"numpy": "1"}, "commit": "b"})


def wait_until_gone(group):
    """Wait for the last process of a group to end: workers must not outlive who started them."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    pytest.fail("workers go on after the run was killed")


@pytest.mark.parametrize("content", [b"garbage\n", b"[1, 2]\n", b"\xff\xfe\n", b'{}\n{"a": 1}\n'])
def test_a_file_that_is_no_journal_is_named(tmp_path, content):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"journal.jsonl is not a journal of this benchmark: remove it"):
        Journal(path, {})
    assert path.read_bytes() == content


def test_a_killed_command_goes_on_where_it_stopped(tmp_path):
    command = [sys.executable, "-m", "caransac", "bench", "synthetic:40", "--methods", "LM-LO", "CA-RANSAC"]
    command += ["--workers", "1", "--timing-pairs", "0", "--out", str(tmp_path / "out")]
    journal = tmp_path / "out" / "journal.jsonl"
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while not journal.exists() or journal.read_text().count("\n") < 3:
        assert running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.wait()
    wait_until_gone(running.pid)
    kept = journal.read_text().rpartition("\n")[0]
    assert kept.count("\n") < 80
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert journal.read_text().startswith(kept)
    assert journal.read_text().count("\n") == 81
    summary.check(json.loads((tmp_path / "out" / "results.json").read_text()))


def test_scenes_count_alike_and_seeds_deviate():
    right, wrong = Outcome(status="found", rotation_deg=0.0, translation_deg=0.0), Outcome(status="failed")
    mixed = {("a", str(pair)): right for pair in range(99)} | {("b", "0"): wrong}
    method = BenchMethod("CA-RANSAC", None, "CA-RANSAC")
    row = TableRow("made", method, "E", RunSettings(), True, [mixed, dict.fromkeys(mixed, right)], [])
    assert summary.mean_and_deviation(row)["AUC5"] == {"mean": 75.0, "std": 25.0}


def test_thresholds_are_tuned_on_other_data(tmp_path):
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


def test_a_time_budget_buys_hypotheses(tmp_path):
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


def test_the_pareto_front_is_what_nothing_beats():
    assert pareto_front([(2, 5), (1, 3), (3, 4), (2, 6), (4, 7)]) == [(1, 3), (2, 6), (4, 7)]


def test_plans_name_what_is_wrong_or_missing():
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


def test_missing_packages_are_listed_not_skipped(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ESTIMATORS, "PoseLib", replace(ESTIMATORS["PoseLib"], module="no_such_module"))
    assert main(["bench", "--list"]) == 0
    assert "needs poselib>=2.0.4" in capsys.readouterr().out
    arguments = ["bench", "synthetic:1", "--methods", "LM-LO", "PoseLib", "--timing-pairs", "0", "--workers", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert "missing: PoseLib" in capsys.readouterr().err
    assert "Missing: PoseLib: needs poselib" in (tmp_path / "table.md").read_text()
    assert "PoseLib" in json.loads((tmp_path / "results.json").read_text())["missing"]


def test_quick_writes_everything(tmp_path, capsys):
    arguments = ["bench", "--quick", "--max-pairs", "3", "--problem", "E", "F", "--timing-pairs", "1", "--seeds", "2"]
    names = (*FAST, "LM-LO 512")
    assert main([*arguments, "--methods", *names, "DEGENSAC", "--workers", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == (tmp_path / "table.md").read_text() + "\n"  # alone, so that it can be redirected to a file
    assert "accuracy E, synthetic: 24/24 runs in" in printed.err
    assert str(tmp_path) in printed.err
    result = json.loads((tmp_path / "results.json").read_text())
    summary.check(result)
    assert [(row["problem"], row["method"]) for row in result["rows"]] == [
        *(("E", name) for name in names),
        *(("F", name) for name in (*names, "DEGENSAC")),
    ]
    for row in result["rows"]:
        assert row["pairs"] == 3
        assert row["ms"] > 0
        assert f"| {row['method']} |" in printed.out
        assert sum(part["count"] for part in row["by_inlier_ratio"]) == 6
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["AUC5"]) == result["rows"][0]["figures"]["AUC5"]["mean"]
    pictures = {path.name.rpartition("-")[2] for path in tmp_path.glob("*.png")}
    assert pictures >= {"curves.png", "pareto.png", "iterations.png", "times.png", "ratios.png", "reliability.png"}


def test_the_record_is_checked(tmp_path):
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


def test_tables_of_the_paper_show_its_figures_on_its_data(tmp_path, capsys):
    for scene in PHOTOTOURISM:
        for pair in make_synthetic(1):
            write_npz(tmp_path / "data", replace(pair, scene=scene))
    arguments = ["bench", "--data", str(tmp_path / "data"), "--workers", "1", "--timing-pairs", "0"]
    assert main([*arguments, "--paper", "table-1", "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "table-1" / "table.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| CA-RANSAC -C |"))
    assert "55.8 | 28.8 | 88.8" in row
    result = json.loads((tmp_path / "out" / "table-1" / "results.json").read_text())
    elsewhere = result | {"rows": [row | {"scenes": {"elsewhere": {}}} for row in result["rows"]]}
    assert "55.8" not in format_markdown(elsewhere, TABLES["table-1"])
    assert "other data" in format_markdown(elsewhere, TABLES["table-1"])
    capsys.readouterr()
    for table in TABLES.values():
        names = {name.rpartition(" + ")[2] for name in table.rows}
        assert names <= set(ESTIMATORS)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no data"),
        (["nowhere"], "nowhere"),
        (["synthetic:0"], "no pairs in synthetic"),
        (["synthetic:1", "--methods", "ca-ransack"], "CA-RANSAC"),
        (["synthetic:1", "--paper", "table-99"], "table-99"),
        (["synthetic:1", "--workers", "0"], "workers"),
        (["synthetic:1", "--iterations", "0"], "iterations"),
        (["synthetic:1", "--filter", "x=nowhere.npz"], "--filter"),
    ],
)
def test_mistakes_are_named(arguments, expected, tmp_path, capsys):
    assert main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("name", ["budget_ms", "max_ratio"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_rules_that_are_no_numbers_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name.replace('_', '-')} must be at least"):
        Plan(sources=("synthetic:2",), **{name: value})


def test_missing_plots_show_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "synthetic:2", "--methods", "LM-LO", "--out", str(tmp_path / "out")]) == 2
    assert "the benchmark needs matplotlib: pip install 'caransac[bench]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

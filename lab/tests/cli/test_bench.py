"""``caransac-lab bench``: its files, its output, and its errors."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from layouts import write_pair_list, write_posebench, write_scene

from caransac.learned.weights_file import weights_path
from caransac_lab.bench.adapters import ESTIMATORS
from caransac_lab.bench.paper import FIGURES, PHOTOTOURISM, PRESET, TABLES
from caransac_lab.bench.publication import format_markdown
from caransac_lab.cli import main
from caransac_lab.cli.paper import expand_paper
from caransac_lab.datasets import make_synthetic, write_npz

pytestmark = pytest.mark.slow


def test_tables_of_the_paper_show_its_figures_on_its_data(tmp_path, capsys):
    for scene in PHOTOTOURISM:
        for pair in make_synthetic(1):
            write_npz(tmp_path / "data", replace(pair, scene=scene))
    arguments = ["paper", "table-1", "--data", str(tmp_path / "data"), "--workers", "1", "--timing-pairs", "0"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "table-1" / "table.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| CA-RANSAC paper -C "))
    assert "55.8 28.8 88.8" in " ".join(row.replace("|", "").split())
    result = json.loads((tmp_path / "out" / "table-1" / "results.json").read_text())
    elsewhere = result | {"rows": [row | {"scenes": {"elsewhere": {}}} for row in result["rows"]]}
    assert "55.8" not in format_markdown(elsewhere, TABLES["table-1"])
    assert "other data" in format_markdown(elsewhere, TABLES["table-1"])
    capsys.readouterr()
    for table in TABLES.values():
        names = {name.rpartition(" + ")[2] for name in table.rows}
        assert names <= set(ESTIMATORS)
        assert {PRESET, "CA-RANSAC", "LM-LO", "PoseLib"} <= names


def test_all_tables_and_figures_of_the_paper_run(tmp_path, monkeypatch, capsys, rng):
    """The test runs all installed rows of some tables, on one pair in each layout; `make paper` runs all tables."""
    for name in set(TABLES) - {"table-4", "table-6"}:
        monkeypatch.delitem(TABLES, name)
    pairs = list(make_synthetic(1))
    folders = [tmp_path / name for name in ("scannet", "megadepth")]
    for folder in folders:
        folder.mkdir()
    pair_list, posebench = write_pair_list(folders[0], pairs), folders[1] / "posebench.h5"
    write_posebench(posebench, pairs[0], as_arrays=True)
    write_scene(tmp_path / "phototourism" / "val" / "scene", rng, num_images=2)
    layouts = [str(pair_list), str(posebench), str(tmp_path / "phototourism" / "val")]
    out = tmp_path / "out"
    arguments = ["--workers", "1", "--timing-pairs", "0", "--iterations", "128", "-q"]
    data = [word for layout in layouts for word in ("--data", layout)]
    assert main(["paper", "all", *data, *arguments, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert {path.name for path in out.iterdir() if path.is_dir()} == set(TABLES)
    for name, table in TABLES.items():
        results = json.loads((out / name / "results.json").read_text())
        rows = {row["method"] for row in results["rows"]}
        assert rows | set(results["missing"]) == set(table.rows)
        assert len({row["dataset"] for row in results["rows"]}) == 3
        assert {PRESET, "CA-RANSAC", "LM-LO"} <= rows
        assert all(row["crashes"] == 0 for row in results["rows"] if "CA-RANSAC" in row["method"])
    for figure in FIGURES:
        assert all((out / f"{figure}-{number}.png").stat().st_size > 5000 for number in range(3))
    assert "CA-RANSAC paper (E)" in printed and "ContextFilter 128 + eight-point" in printed
    assert expand_paper(["all"]) == [*TABLES, *FIGURES] and expand_paper(["figure-1", "figure-1"]) == ["figure-1"]


def test_scores_may_be_left_out(tmp_path, rng):
    write_scene(tmp_path / "made" / "val" / "scene", rng, num_images=2)
    arguments = ["--methods", "LM-LO", "--timing-pairs", "0", "--workers", "1", "--no-plots", "-q"]
    assert main(["bench", f"{tmp_path}/made/val=none", *arguments, "--out", str(tmp_path / "out")]) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row["dataset"] for row in results["rows"]] == ["made/val=none"]
    assert not list((tmp_path / "out").glob("*.png")) and (tmp_path / "out" / "table.md").is_file()


def test_the_users_own_weights_get_a_row(tmp_path):
    arguments = ["synthetic:1", "--methods", "CA-RANSAC paper tuned", "--timing-pairs", "0", "--workers", "1"]
    weights = ["--weights", str(weights_path("paper"))]
    assert main(["bench", *arguments, "-q", "--out", str(tmp_path / "without")]) == 0
    missing = json.loads((tmp_path / "without" / "results.json").read_text())["missing"]
    assert "--weights FILE" in missing["CA-RANSAC paper tuned"]
    assert main(["bench", *arguments, *weights, "-q", "--out", str(tmp_path / "with")]) == 0
    (row,) = json.loads((tmp_path / "with" / "results.json").read_text())["rows"]
    assert row["method"] == "CA-RANSAC paper tuned" and row["pairs"] == 1


@pytest.mark.parametrize("arguments", [["nodir"], ["--data", "nodir"], ["synthetic:2", "--tune", "nodir"]])
def test_data_that_are_not_there_are_named_first(arguments, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    assert "caransac-lab: no such file or folder: nodir; want a folder of scenes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
    names = ("LM-LO", "OpenCV USAC_DEFAULT", "CA-RANSAC", "LM-LO 512")
    assert main([*arguments, "--methods", *names, "DEGENSAC", "--workers", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    # Stdout has only the table, so that it can be redirected to a file.
    assert printed.out == (tmp_path / "table.md").read_text()
    assert "accuracy E, synthetic: 24/24 runs in" in printed.err
    assert str(tmp_path) in printed.err
    result = json.loads((tmp_path / "results.json").read_text())
    assert [(row["problem"], row["method"]) for row in result["rows"]] == [
        *(("E", name) for name in names),
        *(("F", name) for name in (*names, "DEGENSAC")),
    ]
    for row in result["rows"]:
        assert row["pairs"] == 3
        assert row["ms"] > 0
        assert f"| {row['method']} " in printed.out
        assert sum(part["count"] for part in row["by_inlier_ratio"]) == 6
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["AUC5"]) == result["rows"][0]["figures"]["AUC5"]["mean"]
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == {path.stem for path in tmp_path.glob("*.svg")}
    pictures = {path.name.rpartition("-")[2] for path in tmp_path.glob("*.png")}
    assert pictures >= {"curves.png", "pareto.png", "iterations.png", "times.png", "ratios.png", "reliability.png"}


def test_redirected_output_contains_only_the_table(tmp_path):
    names = ("OpenCV USAC_DEFAULT", "MAGSAC++", "GC-RANSAC", "COLMAP")  # libraries that may print something themselves
    arguments = ["--quick", "--max-pairs", "1", "--timing-pairs", "0", "--methods", *names, "--out", str(tmp_path)]
    command = [sys.executable, "-m", "caransac_lab", "bench", *arguments]
    environment = os.environ | {"FORCE_COLOR": "1"}  # makes rich assume a terminal
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == (tmp_path / "table.md").read_text()
    assert "accuracy E, synthetic: 4/4 runs in" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no data"),
        (["nowhere"], "nowhere"),
        (["synthetic:0"], "no pairs in synthetic"),
        (["synthetic:1", "--methods", "ca-ransack"], "CA-RANSAC"),
        (["synthetic:1", "--workers", "0"], "workers"),
        (["synthetic:1", "--iterations", "0"], "iterations"),
        (["synthetic:1", "--filter", "x=nowhere.npz"], "--filter"),
    ],
)
def test_mistakes_are_named(arguments, expected, tmp_path, capsys):
    assert main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert expected in capsys.readouterr().err


def test_unknown_tables_of_the_paper_are_named(tmp_path, capsys):
    assert main(["paper", "table-99", "--data", "synthetic:1", "--out", str(tmp_path / "out")]) == 2
    assert "must be one of table-" in (err := capsys.readouterr().err) and "not 'table-99'" in err


def test_missing_plots_show_before_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "synthetic:2", "--methods", "LM-LO", "--out", str(tmp_path / "out")]) == 2
    assert "the benchmark needs matplotlib: pip install 'caransac-lab[bench]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

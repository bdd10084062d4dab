"""The report: one line per pair, also of those that an earlier run verified."""

import csv

import pytest
from databases import execute, pair_id, read_geometries, some_pairs

from caransac.cli import main

PAIRS = some_pairs(6)  # of the fixture `database`


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_report_covers_earlier_runs(database, tmp_path, ending, capsys):
    report = tmp_path / f"report.{ending}"
    assert main(["verify", str(database), "--report", str(report)]) == 0
    assert "6 calibrated" in capsys.readouterr().out
    first = read_report(report)
    assert [line["image1"] for line in first] == [f"scene/{2 * i + 1:03d}.png" for i in range(len(PAIRS))]
    for line, row in zip(first, read_geometries(database), strict=True):
        assert (int(line["matches"]), int(line["inliers"]), line["config"]) == (200, row[1], "calibrated")
        assert float(line["ratio"]) == pytest.approx(row[1] / 200)
        assert 0 < float(line["confidence"]) <= 1 and float(line["ms"]) > 0

    execute(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", pair_id(2))
    assert main(["verify", str(database), "--report", str(report)]) == 0
    assert "kept 5 from before" in capsys.readouterr().out
    second = read_report(report)
    assert [line for i, line in enumerate(second) if i != 2] == [line for i, line in enumerate(first) if i != 2]
    assert second[2] | {"ms": 0} == first[2] | {"ms": 0}

    report.unlink()  # all that is left is the database
    assert main(["verify", str(database), "--report", str(report)]) == 0
    third = read_report(report)
    assert [line["inliers"] for line in third] == [line["inliers"] for line in first]
    assert all(line["confidence"] in ("", None) and line["ms"] in ("", None) for line in third)


def read_report(path):
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()

"""The report: one line per pair, including pairs that an earlier run verified."""

import csv
from dataclasses import replace

import pytest
from databases import execute, pair_id, read_geometries, some_pairs

from caransac.cli import main
from caransac.verification.pair_records import PairReport
from caransac.verification.pair_reports import write_pair_reports

PAIRS = some_pairs(6)  # the pairs in the fixture `database`


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

    report.unlink()  # only the database remains
    assert main(["verify", str(database), "--report", str(report)]) == 0
    third = read_report(report)
    assert [line["inliers"] for line in third] == [line["inliers"] for line in first]
    assert all(line["confidence"] in ("", None) and line["ms"] in ("", None) for line in third)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=cmd|' /C calc'!A0", None),
        ("-1.png", None),
        ("@2x.png", None),
        ('a,"b"\\é.png', None),
        ("a\r\nb.png,c.png,9,9", r"a\r\nb.png,c.png,9,9"),
        ("\t=1+1", r"\t=1+1"),
        ("a\x1b[2Jb\x00", r"a\x1b[2Jb\x00"),
        ("gnp\u202e.exe", r"gnp\u202e.exe"),
        ("caf\udce9.png", r"caf\udce9.png"),  # invalid UTF-8, in the form in which h5py reads it
    ],
)
def test_names_are_exact_and_cannot_forge_lines(tmp_path, ending, name, written):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path, verified = tmp_path / f"report.{ending}", PairReport(name, "b.png", 9, 6, 6 / 9, 0.75, "calibrated", 1.5)
    skipped = PairReport("z.png", name, 9, 0, 0.0, None, "skipped", None, problem=f"no {name}")
    write_pair_reports(path, [verified, skipped])
    if ending == "csv":
        assert len(path.read_bytes().splitlines()) == 3
    first = read_report(path)
    assert [(line["image1"], line["image2"]) for line in first] == [
        (written or name, "b.png"),
        ("z.png", written or name),
    ]
    assert first[1]["problem"] == f"no {written or name}"

    # A run that found the pair already verified.
    write_pair_reports(path, [replace(verified, confidence=None, ms=None), skipped])
    assert read_report(path) == first


def read_report(path):
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()

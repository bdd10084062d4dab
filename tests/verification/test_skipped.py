"""Pairs of invalid records are skipped and reported, also by the exit code."""

import csv
import re

import pytest
from databases import execute, make_collection, pair_id, query, read_geometries
from hloc_files import arguments, put

from caransac.cli import main


def read_report(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "problem", "names"),
    [
        ("UPDATE cameras SET model = 17 WHERE camera_id = 3", "camera 3 has model EQUI", "scene/003.png"),
        ("UPDATE cameras SET params = x'00' WHERE camera_id = 3", "corrupt camera 3", "scene/003.png"),
        ("DELETE FROM cameras WHERE camera_id = 3", "image scene/003.png has camera 3, which is not", "scene/003.png"),
        ("DELETE FROM images WHERE image_id = 3", "image 3 is not there: match again", "image 3"),
        (
            "UPDATE keypoints SET data = 7 WHERE image_id = 3",
            "corrupt keypoints of scene/003.png",
            "scene/003.png",
        ),
        ("UPDATE keypoints SET rows = 0, data = x'' WHERE image_id = 3", "scene/003.png has 0", "scene/003.png"),
        (f"UPDATE matches SET data = x'00' WHERE pair_id = {pair_id(1)}", "corrupt matches of pair", "scene/003.png"),
        (
            f"UPDATE matches SET rows = {20_000_001}, data = zeroblob({8 * 20_000_001}) WHERE pair_id = {pair_id(1)}",
            "20000001 matches, more than 2000000",
            "scene/003.png",
        ),
    ],
)
def test_a_bad_record_of_a_database_costs_its_pairs(database, tmp_path, capsys, command, problem, names):
    execute(database, command)
    report = tmp_path / "report.csv"
    assert main(["verify", str(database), "--report", str(report)]) == 3
    printed = capsys.readouterr()
    assert "Verified 5 pairs" in printed.out
    assert f"caransac: skipped {names} and scene/004.png: " in printed.err and problem in printed.err
    assert [row[0] for row in read_geometries(database)] == [pair_id(i) for i in (0, 2, 3, 4, 5)]
    (line,) = [line for line in read_report(report) if line["config"] == "skipped"]
    assert line["image1"] == names and problem in line["problem"] and line["confidence"] == ""

    before = read_geometries(database)
    assert main(["verify", str(database), "--strict", "--overwrite"]) == 2
    assert problem in capsys.readouterr().err and read_geometries(database) == before
    assert main(["verify", str(database)]) == 3, "other pairs are kept, and this one is tried again"
    assert "kept 5 from before" in capsys.readouterr().out


def test_names_in_other_encodings_are_accepted(database, tmp_path):
    execute(database, "UPDATE images SET name = CAST(x'636166e92e6a7067' AS TEXT) WHERE image_id = 3")
    assert main(["verify", str(database), "--report", str(tmp_path / "report.csv")]) == 0
    assert len(read_geometries(database)) == 6
    assert query(database, "SELECT CAST(name AS BLOB) FROM images WHERE image_id = 3") == [(b"caf\xe9.jpg",)]
    assert "caf\\xe9.jpg" in {line["image1"] for line in read_report(tmp_path / "report.csv")}


@pytest.mark.slow
def test_cameras_with_bad_pairs_still_get_their_focal_length(tmp_path, capsys):
    path, _ = make_collection(tmp_path / "database.db")
    execute(path, "UPDATE matches SET data = x'00' WHERE pair_id = (SELECT min(pair_id) FROM matches)")
    assert main(["verify", str(path)]) == 3
    focal = re.search(r"Camera 1: focal length ([\d.]+) px", capsys.readouterr().out)
    assert float(focal[1]) == pytest.approx(800, rel=0.01)


def test_bad_pairs_of_hloc_are_skipped(files, capsys):
    put(files, "matches", "day-2-left.jpg/night-2.jpg", "matches0", None)
    (files / "pairs.txt").write_text((files / "pairs.txt").read_text() + "a b\n")
    report = files / "report.csv"
    assert main(arguments(files, "--report", str(report))) == 3
    printed = capsys.readouterr()
    assert "Verified 4 pairs" in printed.out and "skipped a and b: " in printed.err
    problems = [line["problem"] for line in read_report(report) if line["config"] == "skipped"]
    assert "no matches of a and b" in problems[0] and "corrupt matches of day/2/left.jpg" in problems[1]


@pytest.mark.parametrize("name", ["feats.h5", "matches.h5", "pairs.txt", "cameras.txt", "out/verified.h5"])
def test_reports_do_not_replace_inputs(files, name, capsys):
    renamed = [word.replace(name, "input.csv") for word in arguments(files, "--cameras", str(files / "cameras.txt"))]
    if (files / name).exists():
        (files / name).rename(files / "input.csv")
    elsewhere = files / "link"
    elsewhere.symlink_to(files)
    assert main([*renamed, "--report", str(elsewhere / "input.csv")]) == 2
    assert "input.csv is an input; choose another place" in capsys.readouterr().err


def test_many_skipped_pairs_are_counted(database, capsys):
    execute(database, "UPDATE matches SET data = x'00'")
    assert main(["verify", str(database)]) == 3
    printed = capsys.readouterr()
    assert "Verified 0 pairs" in printed.out and printed.err.count("skipped scene/") == 6

"""``caransac view``: opens a report in the browser, also for failures."""

import webbrowser

import numpy as np
import pytest

from caransac.cli import main
from caransac.io.images import write_image
from caransac.io.matches import Matches, write_matches


def test_view_writes_and_opens(tmp_path, saved, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.chdir(tmp_path)
    assert main(["view", "--matches", saved[0]]) == 0
    assert opened == [(tmp_path / "caransac.html").as_uri()]
    assert main(["view", "--matches", saved[0], "--html", "other.html", "--no-open"]) == 0
    assert len(opened) == 1
    assert (tmp_path / "other.html").stat().st_size > 10_000
    assert str(tmp_path / "other.html") in capsys.readouterr().out
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert main(["view", "--matches", saved[0]]) == 0
    assert "no browser" in capsys.readouterr().err


def test_the_old_option_still_works(tmp_path, saved, capsys):
    assert main(["view", "--matches", saved[0], "--out", str(tmp_path / "r.html"), "--no-open"]) == 0
    assert (tmp_path / "r.html").exists()
    assert "--out is now --html" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["view", "--help"])
    assert "--out" not in capsys.readouterr().out


def test_view_prints_the_same_as_pose(tmp_path, saved, capsys):
    out = ["--html", str(tmp_path / "r.html"), "--no-open"]
    assert main(["pose", "--matches", saved[0]]) == 0
    expected = capsys.readouterr().out.splitlines()
    assert main(["view", "--matches", saved[0], *out]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:-2] == expected[:-1]  # everything except the time
    assert "confidence" in "".join(expected)
    assert printed[-1] == f"Report: {tmp_path / 'r.html'}"
    assert main(["view", "--matches", saved[0], "--quiet", *out]) == 0
    assert capsys.readouterr() == ("", "")


def test_view_shows_failures_too(tmp_path, capsys):
    path = write_matches(tmp_path / "m.txt", Matches(np.ones((3, 2)), np.ones((3, 2))))
    assert main(["view", "--matches", str(path), "--html", str(tmp_path / "r.html"), "--no-open"]) == 1
    assert (tmp_path / "r.html").exists()
    assert "3 matches" in capsys.readouterr().err


def test_the_size_of_the_images_in_the_report_can_be_chosen(tmp_path, saved, capsys, rng):
    pytest.importorskip("cv2", reason="needs OpenCV")
    noise = rng.integers(0, 255, (768, 1024, 3), np.uint8)
    photos = [write_image(tmp_path / name, noise) for name in ("a.png", "b.png")]
    sizes = []
    for chosen in ("200", "800", "0"):
        out = tmp_path / f"{chosen}.html"
        arguments = ["--matches", saved[0], "--max-image-px", chosen, "--html", str(out), "--no-open"]
        assert main(["view", *map(str, photos), *arguments]) == 0
        sizes.append(out.stat().st_size)
    assert sizes[0] + 100_000 < sizes[1] < sizes[2]
    assert main(["view", "--matches", saved[0], "--max-image-px", "-1"]) == 2
    assert "--max-image-px" in capsys.readouterr().err

"""caransac refine, and caransac verify --images."""

import shutil
import signal
import sqlite3
import subprocess
import sys

import h5py
import numpy as np
import pytest
from photographed import Photographed

from caransac.cli import main


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with photographs, a matched database and a verified one."""
    folder, plane = tmp_path_factory.mktemp("refine"), Photographed()
    plane.write_photographs(folder / "photos")
    plane.write_files(folder)
    plane.write_database(folder / "matched.db")
    with sqlite3.connect(folder / "matched.db") as connection:
        connection.execute("DELETE FROM two_view_geometries")
    connection.close()  # the copy would lack what is in the write-ahead log
    shutil.copyfile(folder / "matched.db", folder / "verified.db")
    assert main(["verify", str(folder / "verified.db"), "-q"]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


def content_of(path):
    """Return all rows of all tables."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}"))) for name in names}


def refine(folder, *more):
    return main(["refine", str(folder / "verified.db"), "--images", str(folder / "photos"), "-q", *map(str, more)])


def test_the_copy_is_refined_and_verified(folder, capsys):
    before = content_of(folder / "verified.db")
    assert refine(folder) == 0
    shown = capsys.readouterr().out
    assert "Refined 1250 keypoints in 10 pairs" in shown
    assert "do not agree; they are removed" in shown
    assert "Verified 10 pairs" in shown
    after = content_of(folder / "verified-refined.db")
    assert content_of(folder / "verified.db") == before
    assert not any("outdated" in name for name in after)
    with sqlite3.connect(folder / "verified-refined.db") as connection:
        assert connection.execute("SELECT sum(outdated) FROM caransac_geometries").fetchone() == (0,)
    assert not list(folder.glob("*.refining"))


def test_the_same_command_again_changes_nothing(folder, capsys):
    for option in ("--in-place", "--keep-matches"):
        refine(folder, option)
        path = folder / ("verified.db" if option == "--in-place" else "verified-refined.db")
        before = content_of(path)
        capsys.readouterr()
        if option == "--in-place":
            assert refine(folder, option) == 0
            assert content_of(path) == before
            assert "Verified 0 pairs" in capsys.readouterr().out
            assert main(["refine", str(path), "--undo", "-q", "--max-error", "3"]) == 0


def test_a_refinement_in_place_is_undone(folder):
    before = content_of(folder / "verified.db")
    assert refine(folder, "--in-place") == 0
    assert content_of(folder / "verified.db")["keypoints"] != before["keypoints"]
    assert main(["refine", str(folder / "verified.db"), "--undo", "-q", "--max-error", "3"]) == 0
    after = content_of(folder / "verified.db")
    for name in ("keypoints", "matches", "two_view_geometries", "images", "cameras"):
        assert after[name] == before[name]


def test_verify_with_photographs_does_both(folder, capsys):
    command = ["verify", str(folder / "matched.db"), "--images", str(folder / "photos"), "-q"]
    assert main(command) == 0
    assert "Refined 1250 keypoints" in capsys.readouterr().out
    after = content_of(folder / "matched.db")
    assert refine(folder, "--in-place") == 0
    for name in ("keypoints", "matches", "two_view_geometries"):
        assert after[name] == content_of(folder / "verified.db")[name]
    assert main(command) == 0
    assert content_of(folder / "matched.db") == after


def test_files_of_hloc(folder, capsys):
    files = [f"--{name}={folder / file}" for name, file in (("features", "feats.h5"), ("pairs", "pairs.txt"))]
    command = ["refine", *files, f"--matches={folder / 'verified.h5'}", f"--images={folder / 'photos'}", "-q"]
    assert main(command) == 0
    assert "Verified 10 pairs" in capsys.readouterr().out
    assert not list(folder.glob("*.agreeing"))
    with h5py.File(folder / "verified-refined.h5") as matches:
        assert len(matches) == 4
        assert np.sum(matches["0.png/1.png/matches0"][()] >= 0) > 150
    before = (folder / "verified-refined.h5").read_bytes()
    assert main(command) == 0
    assert (folder / "verified-refined.h5").read_bytes() == before


def test_missing_photographs_are_named(folder, capsys):
    (folder / "photos" / "2.png").unlink()
    assert refine(folder) == 3
    errors = capsys.readouterr().err
    assert "no photograph of 2.png: no such image" in errors
    assert "1 images have no photograph: their matches stay" in errors


def test_strict_stops_at_a_missing_photograph(folder, capsys):
    (folder / "photos" / "2.png").unlink()
    assert refine(folder, "--strict") == 2
    assert "the photograph of 2.png cannot be used" in capsys.readouterr().err
    assert not (folder / "verified-refined.db").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{db}"], "--images"),
        ([], "give DATABASE.db"),
        (["{db}", "--images", "{photos}", "--in-place", "--out", "x.db"], "not both"),
        (["{db}", "--images", "{photos}", "--out", "{db}"], "is an input"),
        (["{db}", "--images", "{photos}", "--out", "{photos}/0.png"], "not a COLMAP database"),
        (["{db}", "--images", "{photos}", "--out", "{matched}"], "exists: choose another path"),
        (["{db}", "--images", "{photos}/no"], "no such folder"),
        (["{matched}", "--images", "{photos}"], "run caransac verify first"),
        (["{db}", "--undo"], "nothing to undo"),
        (["{db}", "--undo", "--images", "{photos}"], "--undo takes"),
        (["{db}", "--features", "f.h5", "--images", "{photos}"], "not both"),
        (["no.db", "--images", "{photos}"], "no such database"),
    ],
)
def test_mistakes_are_explained(made, capsys, words, message):
    places = {"db": made / "verified.db", "matched": made / "matched.db", "photos": made / "photos"}
    before = content_of(made / "verified.db")
    assert main(["refine", *(word.format(**places) for word in words)]) == 2
    assert message in capsys.readouterr().err
    assert content_of(made / "verified.db") == before


KILLED = """
import os, signal, sys
from caransac.cli import main
from caransac.keypoint_refinement import ColmapKeypoints, WorkFile, refine_collection
from caransac.verification import ColmapDatabase

refine_collection.PAIRS_PER_BATCH = 3
steps = {"align": (WorkFile, "write"), "write": (ColmapKeypoints, "_remaining"), "verify": (ColmapDatabase, "finish")}

if __name__ == "__main__":
    owner, name = steps[sys.argv.pop(1)]
    real, calls = getattr(owner, name), []

    def once(self, *arguments, **more):
        calls.append(name)
        if name != "write" or len(calls) > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *arguments, **more)

    setattr(owner, name, once)
    sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
@pytest.mark.parametrize("step", ["align", "write", "verify"])
@pytest.mark.parametrize("where", ["--in-place", "--out"])
def test_a_killed_run_continues_to_the_same_database(folder, step, where):
    undisturbed = shutil.copytree(folder, folder.with_name("undisturbed"))
    names = [where] if where == "--in-place" else [where, folder / "out.db"]
    assert refine(undisturbed, *(names[:1] if where == "--in-place" else [where, undisturbed / "out.db"])) == 0
    before = content_of(folder / "verified.db")
    (folder / "killed.py").write_text(KILLED)
    command = [sys.executable, folder / "killed.py", step, "refine", folder / "verified.db", "--images"]
    done = subprocess.run([*command, folder / "photos", *names], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    if where == "--out" or step != "verify":
        assert content_of(folder / "verified.db") == before
    assert refine(folder, *names) == 0
    name = "verified.db" if where == "--in-place" else "out.db"
    assert content_of(folder / name) == content_of(undisturbed / name)
    assert not list(folder.glob("*.refining")) and not list(folder.glob(".*-caransac-*"))


FULL_DISK = """
import resource, signal, sys
from caransac.cli import main
from caransac.keypoint_refinement import {owner}

def full(self, *arguments, real={owner}.write):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    return real(self, *arguments)

if __name__ == "__main__":
    {owner}.write = full
    sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of POSIX")
@pytest.mark.parametrize("owner", ["WorkFile", "ColmapKeypoints"])
@pytest.mark.parametrize("where", ["--in-place", "--out=out.db"])
def test_a_full_disk_leaves_the_database(folder, owner, where):
    before = content_of(folder / "verified.db")
    (folder / "full.py").write_text(FULL_DISK.format(owner=owner))
    command = [sys.executable, "full.py", "refine", "verified.db", "--images", "photos", where]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 2
    assert "make room, then continue" in done.stderr
    assert "Traceback" not in done.stderr
    assert content_of(folder / "verified.db") == before
    assert not (folder / "out.db").exists()
    assert refine(folder, "--in-place") == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions of POSIX")
def test_a_read_only_database_can_only_be_copied(folder, monkeypatch, capsys):
    path = folder / "verified.db"
    before = content_of(path)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    assert refine(folder, "--in-place") == 2
    assert "is read-only" in capsys.readouterr().err
    monkeypatch.undo()
    path.chmod(0o444)
    assert refine(folder) == 0
    assert content_of(path) == before

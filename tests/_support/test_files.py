"""Files are written completely or not at all."""

import errno
import io
import os
import re
import stat
import subprocess
import sys
from contextlib import contextmanager
from threading import Thread

import numpy as np
import pytest

from caransac._support import files
from caransac._support.files import (
    check_no_input,
    check_writable,
    delivering,
    make_folder,
    naming,
    open_h5,
    replacing,
    replacing_h5,
)
from caransac._support.untrusted import open_npz, read_text


def test_a_file_appears_complete_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "made" / "for.txt"
    for text in ("first", "second"):
        with replacing(path) as temporary:
            assert temporary.suffix == ".txt"
            temporary.write_text(text)
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_named(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"), replacing(tmp_path):
        pass
    with pytest.raises(OSError, match=r"file cannot be made a folder \(it is a file\): choose another place"):
        check_writable(file / "below.txt")
    with pytest.raises(OSError, match="it is a file"):
        make_folder(file)

    def refuse(name, *_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match=r"new.txt cannot be written \(Read-only file system\): choose another") as caught:
        check_writable(tmp_path / "new.txt")
    assert "/.new" not in str(caught.value)


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_new_files_have_the_permissions_of_any(tmp_path, mask):
    with umask(mask):
        with replacing(tmp_path / "ours") as temporary:
            assert permissions(temporary) == 0o666 & ~mask
        (tmp_path / "any").touch()
    assert permissions(tmp_path / "ours") == permissions(tmp_path / "any")


def test_the_process_is_not_touched(tmp_path, monkeypatch):
    def refuse(_):
        pytest.fail("a changed umask would affect the files of other threads")

    monkeypatch.setattr(os, "umask", refuse)
    with replacing(tmp_path / "file") as temporary:
        temporary.write_text("content")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_permissions_are_kept(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert permissions(temporary) & ~(mode | 0o600) == 0, "a private file is private while it is written, too"
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert permissions(path) == mode


def test_links_stay_and_their_files_are_replaced(tmp_path):
    place, link = tmp_path / "place", tmp_path / "link.txt"
    link.symlink_to("place/data")
    for text in ("new", "newer"):  # the first time, the link points to nothing
        with replacing(link) as temporary:
            assert temporary.suffix == ".txt"
            temporary.write_text(text)
        assert link.is_symlink()
        assert (place / "data").read_text() == text
    assert [*place.iterdir()] == [place / "data"]
    check_writable(link)
    assert (place / "data").read_text() == "newer"


def test_the_content_is_on_the_disk_before_the_name_and_then_the_name(tmp_path, monkeypatch):
    path, synced = tmp_path / "file", []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_ino, path.exists())))
    with replacing(path) as temporary:
        temporary.write_text("content")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_inputs_are_not_replaced_by_any_name(tmp_path):
    path, other = tmp_path / "input", tmp_path / "other"
    path.write_text("input")
    (tmp_path / "soft").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    for out in (path, tmp_path / "soft", tmp_path / "hard", tmp_path / "." / "x" / ".." / "input"):
        with pytest.raises(ValueError, match=r"--out .* is an input; choose another place"):
            check_no_input(out, [None, other, path], "--out")
    check_no_input(other, [None, path], "--out")
    with pytest.raises(ValueError, match="is an input"):
        check_no_input(other, [str(other)], "--out")


FULL_DISK = """
import pathlib, resource, sys
import matplotlib, numpy as np
matplotlib.use("Agg")
from caransac.cli import main
from caransac.io.images import write_image
from caransac.verification.pair_reports import write_pair_reports
from caransac.verification.pair_records import PairReport
from caransac.synthetic import make_pair
from caransac.io.matches import Matches, write_matches
from caransac.plot import drawing
pair = make_pair(500, seed=1)
matches = Matches(pair.points1, pair.points2, pair.scores, "ratio", pair.camera1, pair.camera2)
write_matches("in.npz", matches)
reports = [PairReport.of((f"image {i}", f"image {i + 1}"), i, i, 2) for i in range(5000)]
noise = np.random.default_rng(0).integers(0, 255, (300, 300, 3), np.uint8)
command = ["pose", "--matches", "in.npz", "--quiet"]
writers = {
    "o.h5": lambda path: main([*command, "--save", path]),
    "o.npz": lambda path: main([*command, "--save", path]),
    "o.txt": lambda path: main([*command, "--save", path]),
    "o.html": lambda path: main([*command, "--html", path]),
    "view.html": lambda path: main(["view", "--matches", "in.npz", "--html", path]),
    "r.csv": lambda path: write_pair_reports(pathlib.Path(path), reports),
    "r.parquet": lambda path: write_pair_reports(pathlib.Path(path), reports),
    "o.png": lambda path: write_image(path, noise),
    "plot.png": lambda path: drawing.draw_matches(path, pair.points1, pair.points2, np.ones(500), image1=noise),
}
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000,) * 2)
for name, write in writers.items():
    sys.stderr.write(f"{name}> ")
    try:
        code = write(name)
        assert code == 2, code
    except OSError as error:
        print(f"caransac: {error}", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
def test_a_full_disk_names_the_file_whatever_is_written(tmp_path):
    for module in ("cv2", "h5py", "matplotlib", "pyarrow"):
        pytest.importorskip(module, reason=f"needs {module}")
    done = subprocess.run([sys.executable, "-c", FULL_DISK], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.partition("> ")[::2] for line in done.stderr.splitlines()]
    assert len(lines) == 9, done.stderr
    for name, message in lines:
        assert message == f"caransac: {name} cannot be written (File too large): make room, then continue"
    assert [path.name for path in tmp_path.iterdir()] == ["in.npz"]


KILLED = """
import os, pathlib, signal, sys
from caransac._support.files import replacing
with replacing(pathlib.Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX locks")
def test_the_next_run_removes_only_files_of_killed_runs(tmp_path):
    path = tmp_path / "r.csv"
    others = [tmp_path / name for name in (".r-12345678.csv", ".r-caransac-12345678.txt", ".q-caransac-12345678.csv")]
    for other in others:
        other.write_text("somebody's")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert len(list(tmp_path.glob(".r-caransac-*.csv"))) == 1, "the second run removed the file of the first"
    with replacing(path) as first, replacing(path) as second:  # two writers at the same time
        assert first != second and first.exists() and second.exists()
        assert sorted(tmp_path.glob(".r-caransac-*.csv")) == sorted([first, second])
        second.write_text("second")
        first.write_text("first")
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    check_writable(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs")
def test_a_fifo_with_the_name_of_a_temporary_file_blocks_nothing(tmp_path):
    fifo = tmp_path / ".r-caransac-12345678.csv"
    os.mkfifo(fifo)
    writer = Thread(target=check_writable, args=(tmp_path / "r.csv",))
    writer.start()
    writer.join(5)
    blocked = writer.is_alive()
    os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))  # a reader ends the waiting
    writer.join()
    assert not blocked and fifo.is_fifo()


def test_checking_leaves_no_file(tmp_path):
    check_writable(tmp_path / "made" / "file.txt")
    assert list((tmp_path / "made").iterdir()) == []


def test_text_may_begin_with_a_mark_and_must_be_text(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfwords")
    assert read_text(path) == "words"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"list.txt is not a text file in UTF-8"):
        read_text(path)


def test_invalid_archives_are_named(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, a=np.arange(1000))
    whole = path.read_bytes()
    for broken in (b"", b"text", whole[: len(whole) // 2], whole[:300] + bytes(300) + whole[600:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"weights.npz is not an npz archive"), open_npz(path) as arrays:
            arrays["a"]


def test_invalid_h5_files_are_named(tmp_path):
    pytest.importorskip("h5py", reason="needs h5py")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.h5"):
        open_h5(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("text")
    with pytest.raises(OSError, match=r"text\.h5 is not an HDF5 file"):
        open_h5(tmp_path / "text.h5")


def test_h5_files_need_an_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'caransac\[hloc\]'"):
        open_h5(tmp_path / "none.h5")


def test_errors_about_the_content_name_the_file(tmp_path):
    for error in (KeyError("no x1"), TypeError("no x1"), ValueError("no x1")):
        with pytest.raises(ValueError, match=r"file: no x1$"), naming(tmp_path / "file"):
            raise error


def test_content_goes_to_a_path_or_into_an_open_file(tmp_path):
    binary, text = io.BytesIO(b"before "), io.StringIO()
    binary.seek(0, io.SEEK_END)
    for target in (tmp_path / "a.txt", str(tmp_path / "b.txt"), binary, text):
        with delivering(target, ".bin") as temporary:
            assert temporary.suffix == (".bin" if hasattr(target, "write") else ".txt")
            temporary.write_text("ü", encoding="utf-8")
        assert not temporary.exists()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "ü" == (tmp_path / "b.txt").read_text(encoding="utf-8")
    assert binary.getvalue().decode() == "before ü" and text.getvalue() == "ü"
    with pytest.raises(RuntimeError), delivering(text, ".txt") as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert text.getvalue() == "ü", "no part of the failed file"
    with pytest.raises(ValueError, match="not a float"), delivering(3.0, ".txt"):
        pass


@pytest.mark.slow
def test_a_full_disk_raises_and_keeps_the_old_h5_file(tmp_path):
    program = (
        "import resource, sys, pathlib; from caransac._support.files import replacing_h5\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000,) * 2)\n"
        "try:\n"
        "    with replacing_h5(pathlib.Path(sys.argv[1])) as file:\n"
        "        for i in range(300): file[f'group{i}/values'] = [float(i)] * 50\n"
        "except OSError as error: print(error)\n"
    )
    path = tmp_path / "file.h5"
    path.write_text("before")
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r".*file\.h5 cannot be written \(.+\): make room, then continue\n", done.stdout)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("call", ["write", "truncate"])
def test_an_h5_file_is_closed_after_an_error_too(tmp_path, monkeypatch, error, call):
    class Failing(io.FileIO):
        def write(self, data):
            return self.fail_or("write", data)

        def truncate(self, size=None):
            return self.fail_or("truncate", size)

        def fail_or(self, name, value):
            if name == call:
                raise error
            return getattr(io.FileIO, name)(self, value)

    path = tmp_path / "file.h5"
    path.write_text("before")
    forgiving = type("Forgiving", (files._ForgivingFile, Failing), {})
    monkeypatch.setattr(files, "_ForgivingFile", forgiving)
    with pytest.raises(error), replacing_h5(path) as file:
        file["values"] = np.arange(1000.0)
    assert not file
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]

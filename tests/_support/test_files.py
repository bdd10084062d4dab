"""Files are whole or not there."""

import errno
import os
import tempfile

import numpy as np
import pytest

from caransac._support.files import check_writable, make_folder, naming, open_npz, read_text, replacing


def test_a_file_appears_whole_and_replaces_the_old_one(tmp_path):
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

    def refuse(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path / ".temporary"))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(OSError, match=r"new.txt cannot be written \(Read-only file system\): choose another") as caught:
        check_writable(tmp_path / "new.txt")
    assert ".temporary" not in str(caught.value)


def test_checking_leaves_nothing(tmp_path):
    check_writable(tmp_path / "made" / "file.txt")
    assert list((tmp_path / "made").iterdir()) == []


def test_text_may_begin_with_a_mark_and_must_be_text(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"\xef\xbb\xbfwords")
    assert read_text(path) == "words"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"list.txt is not a text file in UTF-8"):
        read_text(path)


def test_archives_that_are_none_are_named(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, a=np.arange(1000))
    whole = path.read_bytes()
    for broken in (b"", b"text", whole[: len(whole) // 2], whole[:300] + bytes(300) + whole[600:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"weights.npz is not an npz archive"), open_npz(path) as arrays:
            arrays["a"]


def test_errors_about_the_content_name_the_file(tmp_path):
    for error in (KeyError("no x1"), TypeError("no x1"), ValueError("no x1")):
        with pytest.raises(ValueError, match=r"file: no x1$"), naming(tmp_path / "file"):
            raise error

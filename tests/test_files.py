"""Files are whole or not there."""

import pytest

from caransac.files import replacing


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

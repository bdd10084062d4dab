"""Messages: ``--quiet`` suppresses progress and notes, but not results; names of files are escaped."""

import os
import shutil

import numpy as np
import pytest
from databases import make_database, some_pairs

from caransac.cli import main
from caransac.io.matches import Matches, write_matches

ODD_NAMES = ["a\x1b[2Jb", pytest.param("caf\udce9", marks=pytest.mark.skipif(os.name == "nt", reason="no such names"))]


def run(capsys, *arguments):
    """Run a command without and with -q. Check that only the first writes to stderr, and return both outputs."""
    assert main([*arguments]) == 0
    loud = capsys.readouterr()
    assert loud.err
    assert main([*arguments, "-q"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    return loud.out, quiet.out


def test_verify_prints_only_the_summary(tmp_path, capsys):
    database = str(make_database(tmp_path / "database.db", some_pairs(3)))
    _, out = run(capsys, "verify", database, "--workers", "1", "--overwrite")
    assert "Verified 3 pairs" in out
    assert main(["verify", database, "--max-error", "2"]) == 0
    assert "--overwrite" in capsys.readouterr().err  # a note: they were verified with other settings before
    assert main(["verify", database, "--max-error", "2", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_quiet_verify_still_prints_errors(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none.db"), "-q"]) == 2
    assert "none.db" in capsys.readouterr().err


@pytest.mark.parametrize("name", ODD_NAMES)  # the second is not UTF-8 on the disk
def test_names_of_files_are_escaped(tmp_path, capsys, saved, name):
    """A name could otherwise send commands to the terminal; a name that is not UTF-8 ended the command."""
    matches, few, page, kept = (str(tmp_path / f"{name}{end}") for end in (".npz", ".txt", ".html", "-kept.npz"))
    shutil.copy(saved[0], matches)
    write_matches(few, Matches(np.ones((3, 2)), np.ones((3, 2))))
    database, report = (str(tmp_path / f"{name}{end}") for end in (".db", ".csv"))
    make_database(tmp_path / "plain.db", some_pairs(1)).rename(database)
    for code, command in (
        (0, ["pose", "--matches", matches, "--html", page, "--save", kept]),
        (0, ["view", "--matches", matches, "--html", page, "--no-open"]),
        (1, ["pose", "--matches", few, "--html", page]),
        (0, ["pose", "--matches", matches, "--html", page, "--json"]),
        (0, ["verify", database, "--workers", "1", "--report", report]),
        (2, ["pose", "--matches", f"{matches}.npz"]),
        (2, ["pose", "a.jpg", "b.jpg", name]),
    ):
        try:
            found = main(command)
        except SystemExit as stopped:  # argparse
            found = stopped.code
        shown = "".join(capsys.readouterr())
        assert (found, ascii(name)[1:-1] in shown) == (code, True), command
        assert not set("\x1b\udce9") & set(shown)

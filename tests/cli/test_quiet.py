"""``--quiet`` of commands that take long: it suppresses progress and notes, but not results."""

from databases import make_database, some_pairs

from caransac.cli import main


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

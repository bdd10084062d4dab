"""The command line ``caransac-lab``."""

import subprocess
import sys

import pytest

import caransac
from caransac_lab.cli import COMMANDS, main


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "expected"), [(["--version"], caransac.__version__), (["--help"], "train")])
def test_help_and_version(arguments, expected):
    command = [sys.executable, "-m", "caransac_lab", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert expected in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_escapes(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "%%" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["bench", "--timming-pairs", "3"], "--timing-pairs"),
        (["train", "--out", ".", "--stpes", "3"], "--steps"),
        (["bnech"], "bench"),
    ],
)
def test_misspelt_words_get_suggestions(arguments, meant, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    err = capsys.readouterr().err
    assert err.startswith("usage: caransac-lab")
    assert f"; did you mean {meant}?" in err

"""``caransac completion``: shell scripts that list every command and option."""

import re
import shutil
import subprocess

import pytest

from caransac.cli import COMMANDS, main
from caransac.io.images import installed_features


def script(capsys, shell):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(text, *words):
    """Return the completions that bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}"
    program = f'{text}\n{asked}\n_caransac\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_values(capsys):
    text = script(capsys, "bash")
    names = list(COMMANDS)
    assert complete(text, "caransac", "") == names
    assert complete(text, "caransac", "p") == ["pose"]
    assert complete(text, "caransac", "pose", "--max") == ["--max-features", "--max-size", "--max-error"]
    assert complete(text, "caransac", "pose", "a.jpg", "--no-o") == []
    assert complete(text, "caransac", "view", "a.jpg", "--no") == ["--no-refine", "--no-open"]
    assert complete(text, "caransac", "pose", "a.jpg", "--features", "") == list(installed_features())
    assert complete(text, "caransac", "completion", "z") == ["zsh"]
    assert complete(text, "caransac", "pose", "--save", "m") == []  # no completion, so that bash completes file names


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_completes_every_option(capsys, shell):
    text = script(capsys, shell)
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
        within = [line for line in text.splitlines() if name in line]
        assert "--help" in options
        for option in options:
            spelt = f"-l {option[2:]}" if shell == "fish" else option
            assert any(spelt in line for line in within), (name, option)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_are_correct(capsys, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    subprocess.run([shell, "--no-execute", "-c", script(capsys, shell)], check=True)

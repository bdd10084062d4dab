"""The command line."""

import signal
import subprocess
import sys

import pytest

import caransac
from caransac.cli import main


@pytest.mark.slow
def test_demo_prints_a_table_and_draws(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "pictures")]) == 0
    printed = capsys.readouterr().out
    assert float(printed.split("Pose error ")[1].split("°")[0]) < 0.3
    rows = [line.split() for line in printed.splitlines() if " of orb " in line or " of rootsift " in line]
    assert len(rows) == 3
    for _, _, _, count, alone, _, noise_alone, _, refined, _, noise, _, added, _ in rows:
        assert int(count) > 300
        assert float(refined) < 0.7 * float(alone) < 1
        assert float(noise) < 0.7 * float(noise_alone)
        assert float(added) < 1000
    assert (tmp_path / "pictures" / "matches.png").stat().st_size > 10_000
    assert str(tmp_path / "pictures") in printed
    assert str(tmp_path / "pictures" / "report.html") in printed
    text = (tmp_path / "pictures" / "report.html").read_text()
    assert "image1.png" in text
    for name in ("image1.png", "image2.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_demo_does_without_the_extras(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", "--out", str(tmp_path / "pictures")]) == 0
    printed = capsys.readouterr().out
    assert "pip install 'caransac[images]'" in printed
    assert "pip install 'caransac[plot]'" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--version"], caransac.__version__), (["--help"], "demo"), (["demo", "--help"], "--out")],
)
def test_help_and_version(arguments, expected):
    command = [sys.executable, "-m", "caransac", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert expected in done.stdout


@pytest.mark.parametrize("command", ["pose", "view", "verify", "localize", "demo", "completion"])
def test_help_shows_no_escapes(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "%%" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error():
    with subprocess.Popen(
        [sys.executable, "-m", "caransac", "completion", "fish"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize("command", ["pose", "view", "verify", "localize", "demo", "completion"])
def test_unknown_options_show_the_usage_of_their_command(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, *{"completion": ["bash"], "localize": ["sparse", "query.jpg"]}.get(command, []), "--colour"])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"usage: caransac {command}")
    assert f"caransac {command}: error: unrecognized arguments: --colour\n" in err


@pytest.mark.parametrize("command", ["train", "bench"])
def test_commands_of_the_lab_name_the_lab(command, capsys):
    assert main([command, "--anything"]) == 2
    assert f"'caransac {command}' is now 'caransac-lab {command}'" in capsys.readouterr().err


def test_unknown_commands_are_refused(capsys):
    for command, answer in (("verfy", "; did you mean verify? (see"), ("estimate", "'estimate' (see")):
        with pytest.raises(SystemExit) as stopped:
            main([command])
        assert stopped.value.code == 2
        assert f"there is no command {command!r}" in (err := capsys.readouterr().err) and answer in err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["pose", "a", "b", "--max-eror=3"], "--max-error"),
        (["pose", "a", "b", "--jsn", "--hmtl", "c.html"], "--json and --html"),
        (["verify", "database.db", "--overwite"], "--overwrite"),
        (["verify", "database.db", "--min_inliers", "20"], "--min-inliers"),
    ],
)
def test_misspelt_options_get_suggestions(arguments, meant, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert f"; did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("start", "module"), [("module", "caransac.cli"), ("module", "numpy"), ("script", "argparse"), ("script", "numpy")]
)
def test_an_interrupt_while_the_program_is_loaded_is_one_line(start, module):
    """Ctrl-C during an import, for ``python -m caransac`` and for the installed script."""
    program = f"""
import os, runpy, signal, sys, time
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1000)
sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["pose", "--matches", "none.npz"]
if {start!r} == "module":
    runpy.run_module("caransac", run_name="__main__")
from caransac.cli import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert done.returncode == 130
    assert done.stderr == "caransac: interrupted; the same command starts again\n"

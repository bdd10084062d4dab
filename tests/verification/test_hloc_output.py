"""The output file for hloc: complete or missing, no matter when and how a run stops."""

import re
import subprocess
import sys

import h5py
import pytest
from hloc_files import arguments, content, group, inputs_of

from caransac.cli import main
from caransac.verification import HlocFiles, VerificationOptions, open_executor, verify

pytestmark = pytest.mark.slow


def test_interrupted_runs_continue(files):
    assert main(arguments(files)) == 0
    out = files / "out/verified.h5"
    expected = content(out)
    inputs = inputs_of(files)

    again = files / "again.h5"
    interrupt(HlocFiles(*inputs, again))
    assert not again.exists() and (files / "again.h5.partial").exists()
    assert resume(HlocFiles(*inputs, again)) == (1, 4)
    assert content(again) == expected and list(files.glob("*again*")) == [again]

    for overwrite in (False, True):  # the run resumes with and without overwrite
        interrupt(HlocFiles(*inputs, again, overwrite=True))
        assert content(again) == expected, "the old output stays until the new one is complete"
        assert resume(HlocFiles(*inputs, again, overwrite=overwrite)) == (1, 4)
        assert content(again) == expected

    for overwrite, pending in ((False, []), (True, [0, 1, 2, 3, 4])):
        source = HlocFiles(*inputs, out, overwrite=overwrite)
        assert source.pending == pending
        source.close()


def interrupt(source):
    """Verify one pair, then stop."""
    source.batch_size = 1

    def stop(_):
        raise KeyboardInterrupt

    with open_executor(1) as (executor, in_flight), pytest.raises(KeyboardInterrupt):
        verify(source, executor, VerificationOptions(), in_flight=in_flight, on_batch=stop)
    source.close()


def resume(source):
    """Verify the remaining pairs. Return the numbers of kept and of remaining pairs."""
    with open_executor(1) as (executor, in_flight):
        verify(source, executor, VerificationOptions(), in_flight=in_flight)
    source.close()
    return len(source.kept), len(source.pending)


def test_another_setting_starts_an_interrupted_overwrite_anew(files):
    inputs = inputs_of(files)
    interrupt(HlocFiles(*inputs, files / "out.h5", overwrite=True, settings="one"))
    source = HlocFiles(*inputs, files / "out.h5", overwrite=True, settings="other")
    assert (source.kept, len(source.pending)) == ([], 5)
    source.close()
    source = HlocFiles(*inputs, files / "out.h5", overwrite=True, settings="one")
    assert (len(source.kept), len(source.pending), source.kept_settings) == (1, 4, {"one": 1})
    source.close()


def test_each_batch_survives_a_kill(files):
    """Only data on disk survive a kill, so the test reads them while the run continues."""
    inputs = inputs_of(files)
    source, kept = HlocFiles(*inputs, files / "out.h5"), []
    source.batch_size = 1

    def count(_):
        other = HlocFiles(*inputs, files / "out.h5")
        kept.append(len(other.kept))
        other.close()

    with open_executor(1) as (executor, _):
        verify(source, executor, VerificationOptions(), in_flight=1, on_batch=count)
    source.close()
    assert kept == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_a_group_that_is_cut_off_half_way_is_not_there(files, monkeypatch, interruption):
    inputs = inputs_of(files)
    assert main(arguments(files)) == 0
    expected = content(files / "out/verified.h5")
    create, calls = h5py.Group.create_dataset, []

    def cut_off(*given, **named):
        calls.append(given)
        if len(calls) == 5:
            raise interruption
        return create(*given, **named)

    with monkeypatch.context() as patch, pytest.raises(interruption):
        patch.setattr(h5py.Group, "create_dataset", cut_off)
        resume(HlocFiles(*inputs, files / "out.h5"))
    assert not (files / "out.h5").exists()
    assert resume(HlocFiles(*inputs, files / "out.h5")) == (5, 0)
    assert content(files / "out.h5") == expected


FULL = """
import resource, sys
from caransac.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
sys.exit(main())
"""


@pytest.mark.parametrize("room", [500, 2_000, 8_000, 20_000])
@pytest.mark.parametrize("done_before", [0, 5])
def test_a_full_disk_is_an_error_and_loses_no_data(files, done_before, room, monkeypatch):
    """Files cannot grow beyond `room`: the work file, or the output if all pairs were done before."""
    monkeypatch.setenv("TMPDIR", "/nowhere")
    if done_before:
        with monkeypatch.context() as patch:
            patch.setattr(HlocFiles, "finish", lambda _: None)
            assert main(arguments(files)) == 0
    command = [sys.executable, "-c", FULL, str(room), *arguments(files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert re.search(r"caransac: .*verified\.h5.*make room, then continue", done.stderr), done.stderr
    assert {path.name for path in (files / "out").iterdir()} <= {"verified.h5.partial"}
    assert resume(HlocFiles(*inputs_of(files), files / "out/verified.h5")) == (done_before, 5 - done_before)


def test_foreign_work_files_are_refused(files, capsys):
    (files / "out").mkdir()
    (files / "out/verified.h5.partial").write_text("mine, and longer than a header" * 100)
    assert main(arguments(files)) == 2
    assert "verified.h5.partial is not the work file of an unfinished run" in capsys.readouterr().err
    assert (files / "out/verified.h5.partial").read_text().startswith("mine")


def test_pairs_keep_the_settings_they_were_verified_with(files, capsys):
    pairs = (files / "pairs.txt").read_text().splitlines(keepends=True)
    (files / "pairs.txt").write_text("".join(pairs[:3]))
    assert main(arguments(files, "--seed", "3")) == 0
    (files / "pairs.txt").write_text("".join(pairs))
    capsys.readouterr()
    assert main(arguments(files)) == 0
    assert "3 pairs were verified before, with another seed: they are kept;" in capsys.readouterr().err
    with h5py.File(files / "out/verified.h5") as file:
        assert [file[group(i)].attrs["settings"] for i in range(5)] == [0, 0, 0, 1, 1]
    assert main(arguments(files, "--overwrite")) == 0
    capsys.readouterr()
    assert main(arguments(files)) == 0
    assert capsys.readouterr().err == ""


def test_overwriting_keeps_pairs_that_cannot_be_read_again(files, capsys):
    assert main(arguments(files)) == 0
    before = content(files / "out/verified.h5")
    with h5py.File(files / "matches.h5", "a") as matches:
        del matches[group(2)]["matches0"]
    assert main(arguments(files, "--overwrite")) == 3
    assert "skipped day/2/left.jpg and night/2.jpg: " in capsys.readouterr().err
    assert content(files / "out/verified.h5") == before

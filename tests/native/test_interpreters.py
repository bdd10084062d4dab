"""The end of an interpreter while threads estimate, and interpreters beside the main one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DAEMONS = """
import threading
import caransac
from caransac.synthetic import make_pair

pair = make_pair(1000, 0.6, seed=1)
begun = threading.Barrier(4)


def work():
    caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
    begun.wait()
    while True:
        caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
"""
BESIDE = """
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    import sys
    other = interpreters.create(isolated=False) if sys.version_info >= (3, 12) else interpreters.create()
    run = interpreters.run_string
run(other, '''
import warnings
warnings.simplefilter("ignore")  # numpy's own about such interpreters
try:
    from caransac import Options, estimate_relative_pose
    estimate_relative_pose([[0.0, 0]] * 8, [[0.0, 0]] * 8, (K := [[1, 0, 0], [0, 1, 0], [0, 0, 1]]), K)
except ImportError as error:
    print(error, flush=True)
''')
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("attempt", range(4))  # the state of the threads at the end is random
def test_the_end_of_the_interpreter_is_quiet_while_daemon_threads_estimate(attempt):
    done = run(DAEMONS)
    assert (done.returncode, done.stderr) == (0, ""), attempt


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="needs subinterpreters of CPython")
def test_other_interpreters_are_refused_with_a_message():
    done = run(BESIDE)
    assert "caransac works only in the main interpreter" in done.stdout, done.stderr


def test_bindings_do_not_use_gil_scoped_guards():
    bindings = Path(__file__).parents[2] / "src" / "native" / "bindings"
    if not bindings.is_dir():
        pytest.skip("needs the sources")
    assert [path.name for path in bindings.iterdir() if "gil_scoped" in path.read_text()] == []

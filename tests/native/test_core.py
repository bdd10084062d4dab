"""The core without Python: core_test.cpp, compiled by this machine's compiler, linked and run.

It is linked with the libraries of the build in this tree if they are newer than all sources. Otherwise the core is
compiled, which takes minutes.
"""

import os
import shutil
import site
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "native"
FLAGS = ["-std=c++17", "-O0", "-DCARANSAC_ISA=baseline", "-DEIGEN_MPL2_ONLY", "-Wall", "-Wextra", "-Wno-psabi"]
# These flags make Eigen compile fastest. The speed of the kernels does not matter here.
PLAIN_EIGEN = ["-DEIGEN_DONT_VECTORIZE", "-DEIGEN_NO_DEBUG", "-DEIGEN_NO_STATIC_ASSERT"]
INSTRUMENTED = ("sanitize", "races")  # builds with sanitizers, which cannot be linked with other code
# All sources of the core. Those with Eigen's large templates come first, because they take half of the time.
FIRST = ("refine", "manifolds")
SOURCES = sorted(NATIVE.glob("*.cpp"), key=lambda source: (source.stem not in FIRST, source.stem))


def compiler():
    """Return the path of the C++ compiler, or None."""
    asked = os.environ.get("CXX")
    found = [shutil.which(name) for name in ([asked] if asked else ["c++", "g++", "clang++"])]
    return next(filter(None, found), None)


def eigen():
    """Return the folder of Eigen's headers: that of the build requirement cmeel-eigen, or the system's."""
    prefixes = [sysconfig.get_path("purelib"), *site.getsitepackages(), *sys.path]
    places = [Path(prefix) / "cmeel.prefix" / "include" / "eigen3" for prefix in prefixes]
    places += [Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3"), Path("/opt/homebrew/include/eigen3")]
    return next((place for place in places if (place / "Eigen" / "Core").is_file()), None)


def built_libraries():
    """Return the libraries of the newest build of this tree, the core first; none if sources are newer."""
    changed = max(path.stat().st_mtime for path in NATIVE.rglob("*.*"))
    modules = [path for path in ROOT.glob("build/*/_native.*so") if path.parent.name not in INSTRUMENTED]
    newest = max(modules, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None or newest.stat().st_mtime < changed:
        return []
    return sorted(newest.parent.glob("libcaransac_*.a"), key=lambda path: path.stem != "libcaransac_core")


@pytest.fixture(scope="module")
def core_test(tmp_path_factory):
    """The compiled test."""
    if not NATIVE.is_dir():
        pytest.skip("src/native, the sources of the core, is missing")
    command, headers = compiler(), eigen()
    if command is None or subprocess.run([command, "--version"], capture_output=True).returncode:
        pytest.skip("this test compiles the core and needs a C++ compiler: install g++ or clang")
    if headers is None:
        pytest.skip("this test compiles the core and needs the headers of Eigen: pip install cmeel-eigen")
    folder = tmp_path_factory.mktemp("core")

    libraries = built_libraries()
    flags = FLAGS if libraries else [*FLAGS, *PLAIN_EIGEN]

    def compile_one(source):
        target = folder / f"{source.parent.name}-{source.stem}.o"
        arguments = [command, *flags, f"-I{NATIVE}", "-isystem", headers, "-c", source, "-o", target]
        done = subprocess.run(arguments, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return target

    sources = [Path(__file__).with_name("core_test.cpp")]
    if not libraries:
        sources = [*SOURCES[:2], *sources, *SOURCES[2:], *NATIVE.glob("hot/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    program = folder / "core_test"
    linked = subprocess.run([command, *objects, *libraries, "-o", program], capture_output=True, text=True)
    assert linked.returncode == 0, linked.stderr
    return program


def test_the_core_finds_a_pose_without_python(core_test):
    done = subprocess.run([core_test], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the core works without Python\n")

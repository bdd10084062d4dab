"""The core without Python: core_test.cpp, compiled by this machine's compiler, linked and run.

It is linked with the libraries that the package was built from in this tree, if these are newer than all sources. Else
the core is compiled for it, which takes minutes.
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
# Eigen compiles fastest so; how fast the kernels are is nothing to this test.
PLAIN_EIGEN = ["-DEIGEN_DONT_VECTORIZE", "-DEIGEN_NO_DEBUG", "-DEIGEN_NO_STATIC_ASSERT"]
INSTRUMENTED = ("sanitize", "races")  # builds that link with nothing else
# What the test calls, and what that needs; first those of Eigen's large templates, which take half of the time.
FIRST = ("refine", "manifolds")
SOURCES = sorted(NATIVE.glob("*.cpp"), key=lambda source: (source.stem not in FIRST, source.stem))


def compiler():
    """The compiler that builds for this machine, by its path, or the reason why there is none."""
    asked = os.environ.get("CXX")
    found = [shutil.which(name) for name in ([asked] if asked else ["c++", "g++", "clang++"])]
    return next(filter(None, found), None)


def eigen():
    """The folder of Eigen's headers: where the build requirement cmeel-eigen puts them, or the system's."""
    prefixes = [sysconfig.get_path("purelib"), *site.getsitepackages(), *sys.path]
    places = [Path(prefix) / "cmeel.prefix" / "include" / "eigen3" for prefix in prefixes]
    places += [Path("/usr/include/eigen3"), Path("/usr/local/include/eigen3"), Path("/opt/homebrew/include/eigen3")]
    return next((place for place in places if (place / "Eigen" / "Core").is_file()), None)


def built_libraries():
    """The libraries of the newest build of this tree, the core's first; none if sources have changed since."""
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
        pytest.skip("the core is tested from its sources, and src/native is not here")
    command, headers = compiler(), eigen()
    if command is None or subprocess.run([command, "--version"], capture_output=True).returncode:
        pytest.skip("the core is compiled for this test, and there is no C++ compiler: install g++ or clang")
    if headers is None:
        pytest.skip("the core is compiled for this test, and there are no headers of Eigen: pip install cmeel-eigen")
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

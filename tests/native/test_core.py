"""The core without Python: core_test.cpp, compiled against src/native by this machine's compiler, and run."""

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
# Eigen compiles fastest so; how fast the kernels are is nothing to this test.
PLAIN_EIGEN = ["-DEIGEN_MPL2_ONLY", "-DEIGEN_DONT_VECTORIZE", "-DEIGEN_NO_DEBUG", "-DEIGEN_NO_STATIC_ASSERT"]
FLAGS = ["-std=c++17", "-O0", "-DCARANSAC_ISA=baseline", *PLAIN_EIGEN, "-Wall", "-Wextra", "-Wno-psabi"]
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

    def compile_one(source):
        target = folder / f"{source.parent.name}-{source.stem}.o"
        arguments = [command, *FLAGS, f"-I{NATIVE}", "-isystem", headers, "-c", source, "-o", target]
        done = subprocess.run(arguments, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return target

    sources = [*SOURCES[:2], Path(__file__).with_name("core_test.cpp"), *SOURCES[2:], *NATIVE.glob("hot/*.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    program = folder / "core_test"
    linked = subprocess.run([command, *objects, "-o", program], capture_output=True, text=True)
    assert linked.returncode == 0, linked.stderr
    return program


def test_the_core_finds_a_pose_without_python(core_test):
    done = subprocess.run([core_test], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the core works without Python\n")

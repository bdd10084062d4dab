"""The architecture: a module imports only from the layers below it, and importing is free."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import caransac

LAYERS = [
    {"_native", "_support", "geometry"},
    {"camera", "options", "results", "metrics"},
    {"kernels"},
    {"learned"},
    {"robust"},
    {"api"},
    {"caransac"},  # the package itself: what users import
    {"integrations"},
    {"descriptors"},
    {"synthetic", "render", "matches", "images", "plot"},
    {"datasets"},
    {"viewer", "verification"},
    {"training"},
    {"bench"},
    {"cli"},
]
PACKAGE = Path(caransac.__file__).parent
FILES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[0] != "_"
)


def layer_of(module):
    return next(number for number, layer in enumerate(LAYERS) if module in layer)


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "caransac":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("caransac."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[-1] for alias in node.names if alias.name.split(".")[0] == "caransac")


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_downwards(file):
    module = Path(file.parts[0]).stem  # a module, or the package it belongs to
    for imported in imports_of(PACKAGE / file):
        if imported == module and len(file.parts) > 1:
            continue
        assert layer_of(imported) < layer_of(module), f"{file} imports {imported}"


def test_only_kernels_imports_the_compiled_module():
    assert [str(file) for file in FILES if "_native" in imports_of(PACKAGE / file)] == ["kernels.py"]


def test_importing_pulls_in_numpy_alone():
    program = (
        "import sys, numpy; before = set(sys.modules); import caransac; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"caransac", "numpy"}

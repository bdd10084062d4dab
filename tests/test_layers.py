"""The architecture: a module imports only from the layers below it, and importing is free."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import caransac

LAYERS = [
    {"_native", "geometry"},
    {"camera", "types", "metrics"},
    {"kernels"},
    {"side"},
    {"problems", "sampler", "state"},
    {"estimator"},
    {"api"},
    {"caransac"},  # the package itself: what users import
    {"datasets", "synthetic", "plot"},
    {"cli"},
]
PACKAGE = Path(caransac.__file__).parent
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")


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


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_downwards(module):
    for imported in imports_of(PACKAGE / f"{module}.py"):
        assert layer_of(imported) < layer_of(module), f"{module} imports {imported}"


def test_only_kernels_imports_the_compiled_module():
    importers = [module for module in MODULES if "_native" in imports_of(PACKAGE / f"{module}.py")]
    assert importers == ["kernels"]


def test_importing_pulls_in_numpy_alone():
    program = (
        "import sys, numpy; before = set(sys.modules); import caransac; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"caransac", "numpy"}

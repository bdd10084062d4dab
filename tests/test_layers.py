"""The architecture: a module imports only from the layers below it, and importing loads no heavy library."""

import ast
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import caransac

# From bottom to top. A name is a folder, or a module beside the folders. A module imports only from its own row and the
# rows above it in this list. Imports form no cycle.
LAYERS = [
    {"_native", "_support"},
    {"geometry", "camera", "camera_priors", "camera_words", "given_cameras", "options", "tuning", "policy"}
    | {"results", "result_format", "result_parts", "plot"},
    {"kernels"},
    {"learned", "io"},
    {"robust.records"},
    {"robust.problems"},
    {"robust.loop"},
    {"robust.assess"},
    {"robust.cameras", "robust.patches"},
    {"robust"},  # pipeline, working_set, copies
    {"api"},
    {"caransac"},  # the package itself, which users import
    {"synthetic", "viewer", "verification", "keypoint_refinement", "integrations"},
    {"cli"},
]
PACKAGE = Path(caransac.__file__).parent
FILES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[0] != "_"
)


def module_of(file):
    """Return the dotted name below the package: "robust.problems" for "robust/problems/__init__.py"."""
    return ".".join(part for part in file.with_suffix("").parts if part != "__init__")


MODULES = {module_of(file) for file in FILES}


def layer_of(module):
    """Return the layer of the longest listed name that contains a module."""
    found = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    while module not in found:
        assert "." in module, f"{module} is in no layer"
        module = module.rpartition(".")[0]
    return found[module]


def imports_of(path):
    """Yield the dotted names below the package that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "caransac":
            below = node.module.removeprefix("caransac").removeprefix(".")
            for alias in node.names:
                longer = f"{below}.{alias.name}".removeprefix(".")
                yield longer if longer in MODULES or not below else below
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "caransac":
                    yield alias.name.removeprefix("caransac").removeprefix(".") or "caransac"


def known(name):
    """Return the module or package of an imported name."""
    return name if name in MODULES or name in ("_native", "caransac") else "caransac"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_downwards(file):
    for imported in imports_of(PACKAGE / file):
        assert layer_of(known(imported)) <= layer_of(module_of(file)), f"{file} imports {imported}"


def test_the_estimator_has_no_numbers_at_module_level():
    """Numbers belong to the records in `tuning` or to the function that uses them, each with its reason."""
    for file in (file for file in FILES if file.parts[0] == "robust"):
        for node in ast.parse((PACKAGE / file).read_text()).body:
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            numbers = [each for each in ast.walk(value or ast.Pass()) if isinstance(each, ast.Constant)]
            assert not any(isinstance(each.value, (int, float)) for each in numbers), f"{file}: {ast.unparse(node)}"


def test_imports_form_no_cycle():
    graph = {module_of(file): {known(name) for name in imports_of(PACKAGE / file)} for file in FILES}
    graph = {module: names & set(graph) - {module} for module, names in graph.items()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError and names the modules


def test_there_are_few_layers():
    assert len(LAYERS) <= 14


def test_support_does_not_import_geometry():
    for file in FILES:
        if file.parts[0] == "_support":
            assert all(name.startswith("_support") for name in imports_of(PACKAGE / file)), file


def test_every_module_has_a_layer():
    for module in MODULES:
        assert layer_of(module) >= 0


def test_the_tests_mirror_the_packages():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[:2] != "__"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == packages - {"kernels"} | {"native", "properties", "fuzz"}  # tests/native tests the kernels


def test_module_names_are_unique():
    modules = defaultdict(list)
    for module in map(module_of, FILES):
        modules[module.rpartition(".")[2]].append(module)
    assert not {name: found for name, found in modules.items() if len(found) > 1}


@pytest.mark.slow
def test_only_kernels_imports_the_compiled_module():
    importers = {file.parts[0] for file in FILES if any(n.startswith("_native") for n in imports_of(PACKAGE / file))}
    assert importers == {"kernels"}


@pytest.mark.slow
def test_importing_loads_nothing_and_estimating_loads_only_numpy():
    lazy = "import sys, caransac, caransac.cli; print('numpy' in sys.modules, 'argparse' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", lazy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    program = (
        "import sys, numpy; before = set(sys.modules); from caransac import *; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"caransac", "numpy"}


def test_the_lab_is_never_imported():
    for file in FILES:
        for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(str(name).startswith("caransac_lab") for name in names), file


def test_every_public_name_is_there():
    assert {"Camera", "Options", "__version__", "estimate", "show"} <= set(caransac.__all__) <= set(dir(caransac))
    for name in caransac.__all__:
        assert getattr(caransac, name) is not None


def test_a_public_name_is_searched_for_once():
    program = "import caransac; caransac.estimate_relative_pose; print('estimate_relative_pose' in vars(caransac))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_estimation_modules_need_no_separate_import():
    program = "import caransac; print(caransac.geometry.__name__, hasattr(caransac, 'nothing'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["caransac.geometry", "False"]

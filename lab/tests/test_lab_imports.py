"""Imports of the lab: its layers, and the modules of caransac that it may use."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import caransac
import caransac_lab

PACKAGE = Path(caransac_lab.__file__).parent
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# From bottom to top. A folder imports only from itself and from the folders before it.
LAYERS = ["synthetic", "render", "datasets", "networks", "training", "bench", "cli"]
# Private modules of caransac that the lab uses. A change of these modules may break the lab.
PRIVATE = {
    "": "api camera camera_priors cli kernels options results tuning",
    "_support": "arrays batch computed_once files interrupts processes progress sqlite_files untrusted untrusted_h5",
    "api": "arguments guessed_cameras result_fields same_camera",
    "cli": "quiet verify",
    "geometry": "formulas triangulation",
    "learned": "network_layout side_information state_network weights_file",
    "robust": "pipeline problems records working_set",
    "robust.assess": "confidence degeneracy evidence rivals uncertainty",
    "robust.loop": "sampling scale steps",
    "robust.problems": "relative",
    "verification": "build_identity colmap pair_records",
}


def imports_of(file):
    """Yield the dotted names that a file imports: modules, and names in packages."""
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", [file for file in FILES if len(file.parts) > 1], ids=str)
def test_imports_point_downwards(file):
    for name in imports_of(file):
        package, _, rest = name.partition(".")
        folder = rest.partition(".")[0]
        if package == "caransac_lab" and folder in LAYERS:
            assert LAYERS.index(folder) <= LAYERS.index(file.parts[0]), f"{file} imports {name}"


def test_imports_form_no_cycle():
    modules = {".".join(part for part in file.with_suffix("").parts if part != "__init__"): file for file in FILES}
    graph = {}
    for module, file in modules.items():
        names = [name.removeprefix("caransac_lab.") for name in imports_of(file) if name.startswith("caransac_lab.")]
        found = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in found if name in modules and name and name != module}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError and names the modules


def module_of(name):
    """Return the module of caransac to which an imported name belongs."""
    place = Path(caransac.__file__).parent.joinpath(*name.split(".")[1:])
    return name if place.with_suffix(".py").is_file() or place.is_dir() else name.rpartition(".")[0]


def test_the_lab_uses_the_modules_of_caransac_that_are_listed():
    listed = Path(__file__).parents[2] / "tests" / "public_names.txt"
    public = {line.partition("(")[0].rpartition(".")[0] for line in listed.read_text().splitlines()}
    names = {name for file in FILES for name in imports_of(file) if name.partition(".")[0] == "caransac"}
    private = {".".join(filter(None, ("caransac", at, each))) for at in PRIVATE for each in PRIVATE[at].split()}
    assert {module_of(name) for name in names} - public == private


def test_every_folder_has_a_layer():
    assert {path.parent.name for path in PACKAGE.glob("*/*.py")} == set(LAYERS)


def test_tests_mirror_the_folders():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[:2] != "__"}
    assert folders == set(LAYERS)

"""What the lab is made of: layers of its own, and the modules of caransac that it may use."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import caransac_lab

PACKAGE = Path(caransac_lab.__file__).parent
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# Bottom to top: a folder imports from itself and from those before it.
LAYERS = ["synthetic", "render", "datasets", "networks", "training", "bench", "cli"]
# What the lab uses of caransac beside the public names: a change there may break the lab, and has to look here.
PRIVATE = {
    "_support": {
        "arrays",
        "batch",
        "computed_once",
        "files",
        "interrupts",
        "processes",
        "progress",
        "sqlite_files",
        "untrusted",
        "untrusted_h5",
    },
    "api": {"arguments", "guessed_cameras", "pose_from_fundamental", "result_fields", "same_camera"},
    "cli": {"quiet", "run_program", "verify"},
    "learned": {"network_layout", "side_information", "state_network", "weights_file"},
    "robust": {"assess", "loop", "pipeline", "problems", "records", "working_set"},
}


def imports_of(file):
    """Dotted names that a file imports: modules, and names of packages."""
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


def test_the_lab_uses_the_modules_of_caransac_that_are_listed():
    used = {folder: set() for folder in PRIVATE}
    for file in FILES:
        for name in imports_of(file):
            package, folder, module, *_ = [*name.split("."), "", ""]
            if package == "caransac" and folder in PRIVATE and module:
                used[folder].add(module)
    assert {folder: modules - PRIVATE[folder] for folder, modules in used.items() if modules - PRIVATE[folder]} == {}
    assert {folder: PRIVATE[folder] - modules for folder, modules in used.items() if PRIVATE[folder] - modules} == {}


def test_every_folder_has_a_layer():
    assert {path.parent.name for path in PACKAGE.glob("*/*.py")} == set(LAYERS)


def test_tests_mirror_the_folders():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name[:2] != "__"}
    assert folders == set(LAYERS)

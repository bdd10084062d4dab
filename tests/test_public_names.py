"""The public names and their arguments match a list. Listed names stay for one minor version after a warning.

    python tests/test_public_names.py

updates the list. Before a line is removed, the name needs a `DeprecationWarning` for one minor version.
"""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import caransac

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "public_names.txt"


def public_modules():
    """Return the package and the modules of the API reference."""
    tree = ast.parse((ROOT / "docs" / "pages.py").read_text())
    found = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "MODULES")
    names = [word.value for word in ast.walk(found) if isinstance(word, ast.Constant)]
    return ["caransac", *(f"caransac.{name}" for name in sorted(names) if not name.startswith("integrations"))]


def names_of(module):
    """Return the public names of a module: its __all__, or the names that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return sorted(name for name in own if not name.startswith("_"))


def describe(name, value):
    """Return a line of the list: a name with its arguments or fields."""
    if dataclasses.is_dataclass(value):
        return (
            f"{name}({', '.join(field.name for field in dataclasses.fields(value) if not field.name.startswith('_'))})"
        )
    if inspect.isfunction(value):
        return f"{name}({', '.join(inspect.signature(value).parameters)})"
    return name


def public_names():
    """Return all lines of the list."""
    lines = []
    for place in public_modules():
        module = importlib.import_module(place)
        lines += [describe(f"{place}.{name}", getattr(module, name)) for name in names_of(module)]
    return lines


def test_public_names_match_the_list():
    pytest.importorskip("h5py")
    listed = LIST.read_text().splitlines()
    found = public_names()
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert not gone, "these names were public; they must warn for one minor version before they are removed"
    assert not new, "python tests/test_public_names.py adds them to the list"


@pytest.mark.parametrize("name", ["images", "lens", "matches", "parallax", "types", "FocalEstimate", "estimate_focal"])
def test_names_that_warned_in_0_2_are_gone(name):
    with pytest.raises(AttributeError, match=f"module 'caransac' has no attribute '{name}'"):
        getattr(caransac, name)


def test_names_of_lab_modules_refer_to_the_lab():
    for name in ("bench", "datasets", "filter", "metrics", "render", "training"):
        with pytest.raises(AttributeError, match=f"{name}': it is in caransac-lab now"):
            getattr(caransac, name)


def test_deprecated_names_are_removed_when_announced():
    sources = [path.read_text() for part in ("src", "lab/src") for path in (ROOT / part).rglob("*.py")]
    ends = [int(minor) for text in sources for minor in re.findall(r"removed in 0\.(\d+)", text)]
    assert ends and min(ends) > int(caransac.__version__.split(".")[1])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("estimate_essential", "estimate_relative_pose"),
        ("solve_pnp", "estimate_absolute_pose"),
        ("estimate_homografy", "estimate_homography"),
        ("option", "Options"),
    ],
)
def test_names_that_there_are_not_are_answered_with_the_nearest(name, meant):
    with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
        getattr(caransac, name)


def test_modules_of_io_need_no_import():
    code = "import caransac; caransac.io.images.read_image, caransac.io.matches.Matches"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match=r"caransac\.io' has no attribute 'nothing'"):
        assert caransac.io.nothing


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n")

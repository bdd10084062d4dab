"""The notebook runs from top to bottom, and every cell that ends with a value displays it.

`make notebook` runs it in a fresh environment that its first cell sets up.
"""

import ast
import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
INSTALL = re.compile(r'^%pip install --quiet "(.*)"$', re.MULTILINE)


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cell(source, scope):
    """Run the code of a cell. Return the value of its last line if it is an expression, as a notebook does."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), scope)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), scope)


def display(value):
    """Return how a notebook displays a value: HTML, a picture, or text."""
    for kind in ("_repr_html_", "_repr_png_", "__repr__"):
        if (show := getattr(value, kind, None)) is not None and (shown := show()):
            return kind, shown
    return None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path, capsys):
    install, *cells = code_cells(path)
    assert INSTALL.search(install) and not any(INSTALL.search(cell) for cell in cells)
    scope, shown = {"__name__": "__main__"}, []
    for cell in cells:
        if (value := run_cell(cell, scope)) is not None:
            shown.append(display(value))
    assert [kind for kind, _ in shown] == [
        "__repr__",  # number of matches
        *("_repr_html_",) * 2,  # the result, without and with a picture
        "_repr_png_",  # the rounds
        *("_repr_html_",) * 3,  # unknown cameras, a failure, the viewer
    ]
    assert "<img" in shown[2][1] and "too_few_points" in shown[5][1] and shown[6][1].startswith("<iframe")
    printed = capsys.readouterr().out
    assert float(printed.split("error ")[1].split("°")[0]) < 0.5
    assert scope["result"].success and scope["unknown"].success


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_a_clean_document(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        lines = "".join(cell["source"]).splitlines()
        assert 0 < len(lines) <= 12 and max(map(len, lines)) <= 120
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_the_clone_or_else_the_repository(path, monkeypatch, tmp_path):
    tomllib = pytest.importorskip("tomllib", reason="in the standard library from Python 3.11 on")
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    cell = INSTALL.sub(r'requirement = f"\1"', code_cells(path)[0])
    for folder, source in ((path.parent, ROOT.as_uri()), (tmp_path, f"git+{home}")):
        monkeypatch.chdir(folder)
        run_cell(cell, scope := {})
        assert scope["requirement"] == f"caransac[images,plot] @ {source}"


@pytest.mark.parametrize("path", [ROOT / "README.md", *NOTEBOOKS], ids=lambda path: path.stem)
def test_the_badge_opens_the_notebook_of_the_repository(path):
    tomllib = pytest.importorskip("tomllib", reason="in the standard library from Python 3.11 on")
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    (notebook,) = NOTEBOOKS
    place = f"{home.removeprefix('https://github.com/')}/blob/main/{notebook.relative_to(ROOT).as_posix()}"
    links = re.findall(r"colab\.research\.google\.com/(?!assets/)([\w./-]+)", path.read_text(encoding="utf-8"))
    assert links == [f"github/{place}"]

"""The notebook runs from top to bottom, in order, and shows something in every cell that ends in a value."""

import ast
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def run_cell(source, scope):
    """Run the code of a cell; the value of its last line, if that is an expression, as a notebook does."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), scope)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), scope)


def display(value):
    """What a notebook shows of a value: HTML, a picture, or else text."""
    for kind in ("_repr_html_", "_repr_png_", "__repr__"):
        if (show := getattr(value, kind, None)) is not None and (shown := show()):
            return kind, shown
    return None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path, capsys):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    scope, shown = {"__name__": "__main__"}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            value = run_cell("".join(cell["source"]), scope)
            if value is not None:
                shown.append(display(value))
    assert [kind for kind, _ in shown] == [
        "__repr__",  # how many matches
        *("_repr_html_",) * 2,  # the result, and with a picture
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

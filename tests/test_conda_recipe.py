"""The conda recipe says what pyproject.toml says."""

import re
import sys
from pathlib import Path

import pytest

import caransac

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "recipe" / "meta.yaml"

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="source distributions have no recipe")


def render(platform):
    """The recipe as conda-build reads it: selectors of a platform, then templates."""
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    kept = []
    for line in RECIPE.read_text().splitlines():
        selector = re.search(r"# \[(.+)\]$", line)
        if selector is None or eval(selector[1], {"unix": platform != "win", "win": platform == "win", "py": 312}):
            kept.append(line)

    def load_file_regex(load_file, regex_pattern, from_recipe_dir):
        assert from_recipe_dir
        return re.search(regex_pattern, (RECIPE.parent / load_file).read_text())

    names = {"PYTHON": "python", "compiler": lambda name: f"{name}-compiler", "stdlib": lambda name: f"{name}-stdlib"}
    text = jinja2.Template("\n".join(kept)).render(**names, load_file_regex=load_file_regex)
    return yaml.safe_load(text)


def requirements(lines):
    """Versions by name, of pip's or conda's lines."""
    found = (re.fullmatch(r"([A-Za-z0-9_-]+) ?(.*)", line) for line in lines)
    return {name: versions.replace(" ", "") for name, versions in (each.groups() for each in found)}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
@pytest.mark.parametrize("platform", ["unix", "win"])
def test_the_recipe_is_that_of_the_project(platform):
    import tomllib

    recipe, project = render(platform), tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert recipe["package"] == {"name": "caransac", "version": caransac.__version__}
    run = requirements(recipe["requirements"]["run"])
    assert {name: run[name] for name in run if name != "python"} == requirements(project["project"]["dependencies"])
    host = requirements(recipe["requirements"]["host"])
    host["cmeel-eigen"] = host.pop("eigen")
    assert {name: host[name] for name in host if name not in ("python", "pip")} == requirements(
        project["build-system"]["requires"]
    )
    scripts = [f"{name} = {target}" for name, target in project["project"]["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    assert recipe["about"]["summary"] == project["project"]["description"]
    assert recipe["about"]["license"] == project["project"]["license"]
    assert all((ROOT / path).exists() for path in (*recipe["about"]["license_file"], *recipe["test"]["source_files"]))
    assert "Eigen3_DIR" in recipe["build"]["script"]

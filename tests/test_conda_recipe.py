"""The conda recipe agrees with pyproject.toml, and rattler-build can render it."""

import re
import sys
from pathlib import Path

import pytest

import caransac

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "recipe" / "recipe.yaml"

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="source distributions have no recipe")


def requirements(lines):
    """Return versions by package name, from lines of pip or conda."""
    found = (re.fullmatch(r"([A-Za-z0-9_-]+) ?(.*)", line) for line in lines)
    return {name: versions.replace(" ", "") for name, versions in (each.groups() for each in found)}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
def test_the_recipe_agrees_with_the_project():
    import tomllib

    recipe = pytest.importorskip("yaml").safe_load(RECIPE.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert recipe["context"] == {"name": "caransac", "version": caransac.__version__}
    run = requirements(recipe["requirements"]["run"])
    assert {name: run[name] for name in run if name != "python"} == requirements(project["project"]["dependencies"])
    host = requirements(recipe["requirements"]["host"])
    host["cmeel-eigen"] = host.pop("eigen")
    assert {name: host[name] for name in host if name not in ("python", "pip")} == requirements(
        project["build-system"]["requires"]
    )
    scripts = [f"{name} = {target}" for name, target in project["project"]["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["summary"] == project["project"]["description"]
    assert recipe["about"]["license"] == project["project"]["license"]
    files = (*recipe["about"]["license_file"], *recipe["tests"][1]["files"]["source"])
    assert all((ROOT / path).exists() for path in files)
    (script,) = recipe["build"]["script"]
    assert all("Eigen3_DIR" in each for each in (script["then"][-1], script["else"]))


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
def test_rattler_build_renders_it(platform):
    """rattler-build rejects unknown keys, expressions and requirements."""
    rattler = pytest.importorskip("rattler_build", reason="needs py-rattler-build")
    told = rattler.VariantConfig({"c_stdlib": ["sysroot"], "python": ["3.12.*"]})
    settings = rattler.RenderConfig(platform=rattler.PlatformConfig(target_platform=platform))
    (variant,) = rattler.Stage0Recipe.from_file(RECIPE).render(told, settings)
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "caransac", "version": caransac.__version__}
    assert f"sysroot_{platform}" in rendered["requirements"]["build"]
    windows = platform.startswith("win")
    assert ("clang" in rendered["requirements"]["build"]) == ("CXX=clang-cl" in str(rendered["build"])) == windows
    with pytest.raises(rattler.RattlerBuildError):
        rattler.Stage0Recipe.from_yaml(RECIPE.read_text().replace("entry_points:", "entry_point:"))

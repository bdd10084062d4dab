"""Every Python block in the guides runs unchanged, after the lines that its page says to run first."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from databases import make_database, some_pairs
from photographed import Photographed
from stand_ins import GLUE_FACTORY, install_glue_factory, install_matchers

from caransac.cli import main
from caransac.cli.demo import IMAGES
from caransac.io.images import match_images, read_image, write_image
from caransac_lab.render import render_views

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent / "docs"
FIRST = "**Run these lines first"
# test_hloc_recipe.py runs the blocks of hloc.md, with a command between them.
BLOCKS = {
    path.name: re.findall(r"([^\n]*)\n\n```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    for path in sorted(DOCS.glob("*.md"))
    if path.name != "hloc.md"
}
BLOCKS = {name: blocks for name, blocks in BLOCKS.items() if blocks}


@pytest.fixture(scope="module")
def found():
    """Matches of the images that the guides use."""
    image1, image2 = map(read_image, IMAGES)
    return *match_images(image1, image2, max_features=3000), image1.shape[1::-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the guides assume."""
    for name, path in zip(("a.jpg", "b.jpg"), IMAGES, strict=True):
        (tmp_path / name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return tmp_path


def prepare_migration(folder):
    make_database(folder / "database.db", some_pairs(1))
    (folder / "pairs.txt").write_text("scene/001.png scene/002.png\n")


def prepare_colmap(folder):
    (folder / "images").mkdir()
    for number, image in enumerate(render_views(3, width=480, height=360, seed=0).images):
        write_image(folder / "images" / f"{number}.png", image)


def prepare_paper(folder):
    names = "scene0707_00/frame-000015.jpg", "scene0707_00/frame-000585.jpg"
    (folder / "scannet_test_pairs_with_gt.txt").write_text(" ".join((*names, *"0" * 36)) + "\n")
    (folder / "dump_match_pairs").mkdir()
    keypoints, matched = np.ones((4, 2), np.float32), np.array([0, -1, 2, 3])
    contents = {"keypoints0": keypoints, "keypoints1": keypoints, "matches": matched, "match_confidence": np.ones(4)}
    np.savez(folder / "dump_match_pairs" / "frame-000015_frame-000585_matches.npz", **contents)


def prepare_keypoints(folder):
    plane = Photographed()
    plane.write_photographs(folder / "photos")
    plane.write_database(folder / "database.db")


PREPARE = {
    "keypoints.md": prepare_keypoints,
    "migration.md": prepare_migration,
    "colmap.md": prepare_colmap,
    "paper.md": prepare_paper,
}


@pytest.mark.parametrize("page", BLOCKS)
def test_every_block_runs_unchanged(page, folder, found, monkeypatch):
    points1, points2, ratios, size = found
    PREPARE.get(page, lambda _: None)(folder)
    install_matchers(monkeypatch, points1, points2, 1 - ratios, size)
    install_glue_factory(monkeypatch)
    first = {"__name__": "page"}
    given = [path.name for path in folder.iterdir()]
    for before, block in BLOCKS[page]:
        texts = {node.value for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Constant)}
        assert all(name in block.partition("\n")[0] for name in given if name in texts), before
        if before.startswith(FIRST):
            exec(compile(block, f"{page}, first lines", "exec"), first)
        elif "__main__" in block:  # worker processes read the file that started them
            (folder / "block.py").write_text(block)
            subprocess.run([sys.executable, "block.py"], check=True)
        else:
            scope = first | ({"__package__": GLUE_FACTORY} if "from ..." in block else {})
            exec(compile(block, f"{page}, below {before!r}", "exec"), scope)
            if "estimate" in block and hasattr(scope.get("result"), "success"):
                assert scope["result"].success, before


# Words that the first line of a block contains if the block imports one of these modules.
NEEDS = {
    "caransac.integrations.opencv": "OpenCV",
    "caransac.integrations.pycolmap": "pycolmap",
    "caransac.io.images": "OpenCV",
    "caransac.plot": "matplotlib",
    "caransac_lab": "caransac-lab",
    "cv2": "OpenCV",
    "lightglue": "LightGlue",
}
BUILT_IN = {"caransac", "numpy", *sys.stdlib_module_names}


def imported_modules(block):
    """Return the modules that a block imports. Names that it imports from a module may be modules, too."""
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "glue-factory" if node.level else node.module
            yield from (module, *(f"{module}.{name.name}" for name in node.names))


def test_blocks_name_the_packages_that_they_need():
    for page in sorted(DOCS.glob("*.md")):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for module in imported_modules(block):
                package = module.partition(".")[0]
                word = NEEDS.get(module) or NEEDS.get(package) or ("" if package in BUILT_IN else package)
                assert word in block.partition("\n")[0].partition("# needs ")[2], (page.name, module)


def test_the_pages_that_need_first_lines_show_them():
    shown = {name for name, blocks in BLOCKS.items() if any(before.startswith(FIRST) for before, _ in blocks)}
    assert shown == {"calls.md", "matchers.md", "migration.md", "paper.md", "photographs.md", "pose.md"}
    assert len(BLOCKS["matchers.md"]) >= 10


def test_the_guide_has_the_output_of_the_command(capsys):
    """The numbers depend on the version of OpenCV."""

    def words(text):
        return re.sub(r"-?\d[\d.]*", "0", text).split()

    guide = (DOCS / "pose.md").read_text(encoding="utf-8")
    shown = re.search(r"    Pose of camera 2.*? time[^\n]*", guide, re.DOTALL)[0]
    assert main(["pose", *map(str, IMAGES), "--camera", "864,479.5,359.5"]) == 0
    assert words(capsys.readouterr().out) == words(shown)


def test_the_readme_is_a_first_screen():
    """The README has a description, a picture, the installation, calls and a table, in this order, and is short."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 120
    parts = ("![", "## Install", "```python", "| you have", "<!-- table: first", "## Where others", "## More")
    places = [readme.index(part) for part in parts]
    assert places == sorted(places)


def test_the_index_has_four_ways_in():
    ways = re.findall(r"^## (.*)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert ways == ["I have images", "I have matches", "I have a COLMAP database", "I train or benchmark"]

"""The pages of the site: every page of this folder, and a reference page for each module."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# The two parts of the documentation, each in this order; further pages of the folder follow in the guide.
GUIDE = (
    *(
        "calls",
        "faq",
        "conventions",
        "pose",
        "viewer",
        "matchers",
        "colmap",
        "hloc",
        "keypoints",
        "localisation",
        "migration",
    ),
    *("formats", "performance", "reliability", "algorithm", "paper"),
)
LAB = ("benchmark", "training")
MODULES = (
    *("integrations.opencv", "integrations.poselib", "integrations.poselib_records", "integrations.pycolmap"),
    *("verification", "io.images", "io.descriptors", "io.matches", "viewer", "plot", "synthetic"),
    *("io.adapters", "io.point_files", "geometry"),
)

# The calls come first, then what they take and return.
CALLS = '::: caransac\n    options: {filters: ["!^(?!estimate)"]}\n'
OTHERS = '::: caransac\n    options: {filters: ["!^_", "!^estimate"], show_docstring_description: false}\n'
# What both results have in common is written once, in their base class, which the package does not export.
RESULT = "::: caransac.results.Result\n    options: {show_root_heading: true, show_root_toc_entry: true}\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay out the navigation."""
    others = sorted({path.stem for path in DOCS.glob("*.md")} - {"index", *GUIDE, *LAB})
    config.nav = [
        {"Home": "index.md"},
        {"Guide": [f"{name}.md" for name in (*GUIDE, *others)]},
        {"Lab": [f"{name}.md" for name in LAB]},
        {"Reference": [{title: f"reference/{title}.md"} for title in ("caransac", *present_modules())]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    made = {"reference/caransac": f"# caransac\n\n{CALLS}\n{OTHERS}\n{RESULT}"}
    made |= {f"reference/{name}": f"# {name}\n\n::: caransac.{name}\n" for name in present_modules()}
    for name, text in made.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    return files


def present_modules() -> list[str]:
    """The modules of the reference that exist."""
    places = {name: ROOT / "src" / "caransac" / name.replace(".", "/") for name in MODULES}
    return [name for name, place in places.items() if place.is_dir() or place.with_suffix(".py").is_file()]

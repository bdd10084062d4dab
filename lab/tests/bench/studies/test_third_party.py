"""Scripts of other projects: only their import changes, and missing projects are left out."""

import importlib
import json
import sys

import numpy as np
import pytest

from caransac_lab.cli import main

pytestmark = pytest.mark.slow  # imports all installed estimators

SCRIPT = """
import sys
import numpy as np
import cv2 as cv
points = np.random.default_rng(0).uniform(0, 500, (40, 2))
H, status = cv.findHomography(points, 2 * points + 1, cv.RANSAC, 3.0)
print('%d / %d  inliers/matched' % (np.sum(status), len(status)))
"""


@pytest.fixture
def third_party():
    pytest.importorskip("poselib")
    return importlib.import_module("caransac_lab.bench.studies.third_party")


def test_only_the_import_is_changed(third_party):
    text = "import cv2\nimport numpy\n    import cv2 as cv\nimport poselib  \nimport cv2.aruco\nx = 'import cv2'\n"
    assert third_party.with_our_import(text).splitlines() == [
        "from caransac.integrations import opencv as cv2",
        "import numpy",
        "    from caransac.integrations import opencv as cv",
        "from caransac.integrations import poselib as poselib",
        "import cv2.aruco",
        "x = 'import cv2'",
    ]


def test_without_projects_the_study_is_left_out(tmp_path, capsys):
    assert main(["study", "third_party", "--projects", str(tmp_path)]) == 77
    assert capsys.readouterr().out.splitlines()[-1] == f"no project in {tmp_path}"


def test_a_package_that_a_project_lacks_is_named_with_its_command(tmp_path, monkeypatch):
    script = tmp_path / "glue-factory" / "gluefactory" / "robust_estimators" / "__init__.py"
    script.parent.mkdir(parents=True)
    script.touch()
    monkeypatch.setitem(sys.modules, "omegaconf", None)
    with pytest.raises(SystemExit, match=r"^glue-factory imports omegaconf, .*: pip install omegaconf$"):
        main(["study", "third_party", "--projects", str(tmp_path)])


def test_a_script_runs_unchanged_and_with_our_import(third_party, tmp_path):
    cv2 = pytest.importorskip("cv2")
    script = tmp_path / "projects" / "opencv" / "samples" / "python" / "find_obj.py"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    for name in "ab":
        cv2.imwrite(str(tmp_path / f"{name}.JPG"), np.zeros((60, 80, 3), np.uint8))
    given = ["--projects", str(tmp_path / "projects"), "--photos", str(tmp_path), "--out", str(tmp_path / "out.json")]
    assert main(["study", "third_party", *given]) == 0
    content = json.loads((tmp_path / "out.json").read_text())
    assert [(row["original"], row["ours"]) for row in content["rows"]] == [(40, 40)] * 2
    assert set(content["missing"]) == third_party.PROJECTS.keys() - {"opencv"}
    assert script.read_text() == SCRIPT, "the project itself is unchanged"
    assert "| OpenCV `find_obj.py --feature=sift` | OpenCV | photographs from above | 1 | inliers | 40 | 40 |" in (
        (tmp_path / "out.md").read_text()
    )

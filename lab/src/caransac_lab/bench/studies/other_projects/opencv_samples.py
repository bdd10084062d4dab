"""OpenCV: its find_obj.py, without windows."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

from caransac_lab.bench.studies.other_projects.project_data import INLIERS, Data, Row


def run_opencv(folder: Path, data: Data) -> Iterator[Row]:
    """Run OpenCV's find_obj.py without its windows."""
    import cv2

    for name in ("imshow", "setMouseCallback", "waitKey", "destroyAllWindows", "namedWindow"):
        setattr(cv2, name, lambda *_, **__: 0)
    if not hasattr(cv2, "xfeatures2d"):
        cv2.xfeatures2d = MagicMock(SIFT_create=cv2.SIFT_create)
    script = folder / "samples" / "python" / "find_obj.py"
    sys.path.insert(0, str(script.parent))
    paths = []
    for number, photo in enumerate(data.read_photos()):
        paths.append(str(folder / f"{number}.png"))
        cv2.imwrite(paths[-1], photo)
    for feature in ("sift", "orb"):
        counts = []
        for one, other in itertools.pairwise(paths):
            sys.argv, said = ["find_obj.py", f"--feature={feature}", one, other], io.StringIO()
            with contextlib.redirect_stdout(said):
                runpy.run_path(str(script), run_name="__main__")
            counts += [int(count) for count in re.findall(r"(\d+) / \d+ +inl", said.getvalue())]
        row = {"script": f"OpenCV `find_obj.py --feature={feature}`", "library": "OpenCV"}
        yield row | {"on": "photographs from above", "pairs": len(paths) - 1, "figure": INLIERS, "value": sum(counts)}

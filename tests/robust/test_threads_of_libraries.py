"""Results do not depend on the number of threads of numpy's matrix library, because it computes no sum over matches."""

import os
import subprocess
import sys

import numpy as np
import pytest

from caransac.synthetic import make_pair

PROGRAM = """
import dataclasses, hashlib, sys
import numpy as np
from caransac import Camera, Options, estimate_fundamental, estimate_homography, estimate_relative_pose

with np.load(sys.argv[1]) as stored:
    points1, points2, scores, plane1, plane2 = (stored[name] for name in ("x1", "x2", "scores", "plane1", "plane2"))
camera, free = Camera("SIMPLE_PINHOLE", (921.6, 512.0, 384.0), 1024, 768), Camera.of_unknown_focal(1024, 768)
scored = {"scores": scores, "score_kind": "ratio"}
few = slice(0, 20_000)  # the most that are not thinned out
results = {
    "essential": estimate_relative_pose(points1, points2, camera, camera, **scored),
    "not thinned out": estimate_relative_pose(points1[few], points2[few], camera, camera),
    "paper": estimate_relative_pose(points1[few], points2[few], camera, camera, options=Options.paper()),
    "planar": estimate_relative_pose(plane1[few], plane2[few], camera, camera),
    "fundamental": estimate_fundamental(points1, points2, **scored),
    "homography": estimate_homography(plane1[few], plane2[few]),
    "unknown focal": estimate_relative_pose(points1, points2, free, free, **scored),
}
for name, result in results.items():
    parts = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    del parts["elapsed_s"]
    said = [part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() for part in parts.values()]
    print(name, result.success, hashlib.sha256(b"|".join(said)).hexdigest())
"""


def planar_points(rng, count):
    """Create matches of a plane, two fifths of them wrong."""
    points1 = rng.uniform(0, 700, (count, 2))
    x, y = points1.T
    depth = 1 + 1e-4 * x - 2e-4 * y
    points2 = np.stack([(0.9 * x + 0.1 * y + 20) / depth, (1.1 * y - 0.05 * x - 30) / depth], axis=1)
    points2 += rng.normal(size=points2.shape) * 0.5
    wrong = rng.random(count) < 0.4
    points2[wrong] = rng.uniform(0, 700, (int(wrong.sum()), 2))
    return points1, points2


def run_with(threads, path):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_one_and_two_threads_give_the_same_bits(rng, tmp_path):
    pair = make_pair(40_000, outlier_ratio=0.5, seed=3)
    plane1, plane2 = planar_points(rng, 40_000)
    path = tmp_path / "matches.npz"
    np.savez(path, x1=pair.points1, x2=pair.points2, scores=pair.scores, plane1=plane1, plane2=plane2)
    once, twice = run_with(1, path), run_with(2, path)
    assert len(once) == 7
    assert all(" True " in line for line in once)
    assert once == twice

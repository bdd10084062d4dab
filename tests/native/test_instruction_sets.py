"""All instruction sets of this CPU give the same results up to rounding."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SETS = ("baseline", "avx2", "avx512")

PROGRAM = """
import json, caransac
from caransac import kernels
from caransac.synthetic import make_pair
answers = []
for seed in range(3):
    pair = make_pair(700, outlier_ratio=0.5, seed=seed)
    points, scored = (pair.points1, pair.points2), {"scores": pair.scores, "score_kind": pair.score_kind}
    pose = caransac.estimate_relative_pose(*points, pair.camera1, pair.camera2, **scored)
    fundamental = caransac.estimate_fundamental(*points, **scored)
    answers.append([pose.E.tolist(), (fundamental.F / fundamental.F[1, 1]).tolist()])
print(json.dumps([kernels.instruction_set(), answers]))
"""


def run_with(instruction_set):
    environment = os.environ | {"CARANSAC_INSTRUCTION_SET": instruction_set}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("asked", SETS)
def test_answers_agree_between_instruction_sets(asked):
    used, answers = run_with(asked)
    if used != asked:
        assert SETS.index(used) < SETS.index(asked), "an instruction set that the CPU lacks is never used"
        # The request fell back to a smaller set. Report this as a skip, because there is nothing to compare.
        pytest.skip(f"this CPU has no {asked}")
    _, reference = run_with("baseline")
    assert np.allclose(answers, reference, rtol=1e-3, atol=1e-3)


def test_unknown_instruction_sets_are_refused():
    environment = os.environ | {"CARANSAC_INSTRUCTION_SET": "sse9"}
    program = "from caransac import kernels; kernels.instruction_set()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "baseline, avx2 or avx512" in done.stderr

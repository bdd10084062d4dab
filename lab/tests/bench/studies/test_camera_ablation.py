"""The ablation of uncertain cameras covers every number of the record and changes one at a time."""

from dataclasses import fields

import numpy as np
import pytest

from caransac.synthetic import make_pair
from caransac.tuning import CAMERAS, CameraTuning
from caransac_lab.bench.studies import camera_ablation as study
from caransac_lab.bench.studies.focal import View
from caransac_lab.datasets import Pair


def test_every_tuned_number_is_changed():
    assert set(study.NUMBERS) == {each.name for each in fields(CameraTuning)}
    for name, (values, tasks) in study.NUMBERS.items():
        assert values and getattr(CAMERAS, name) not in values, name
        plain = {each.removeprefix("zoomed, ").removeprefix("long lens, ") for each in tasks}
        assert plain and plain <= set(study.TASKS), name


def test_a_change_is_undone_also_after_an_error():
    with pytest.raises(RuntimeError), study.changed("weak", 0.0):
        assert CAMERAS.weak == 0.0
        raise RuntimeError
    assert CameraTuning() == CAMERAS


@pytest.mark.parametrize("task", [*study.TASKS, "zoomed, unknown", "long lens, unknown", "long lens, F with sizes"])
def test_every_task_finds_the_pose_of_an_easy_pair(task):
    pair = Pair.from_synthetic(make_pair(400, 0.8, seed=1))
    size = (int(2 * pair.camera1.cx + 1), int(2 * pair.camera1.cy + 1))
    figures = study.run_pair(task, "weak", CAMERAS.weak, 1, View(pair, size, size, same=True, sign=1))
    assert figures["auc5"] > (20 if "given" in task else 60)
    assert ("focal" in figures) == (task.endswith("unknown") or task.startswith("uncertain"))


def test_differences_are_paired_over_common_figures():
    before = [{"auc5": 10.0, "focal": 2.0}, {"auc5": 20.0}]
    after = [{"auc5": 11.0, "focal": 3.0}, {"auc5": 23.0, "focal": 9.0}]
    row = study.compare(before, after, np.array([0.5, 0.5]))
    assert row["auc5"] == pytest.approx(2.0)
    assert row["focal"] == pytest.approx(1.0)
    assert row["auc5_interval"] > 0

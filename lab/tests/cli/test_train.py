"""``caransac-lab train``: its output during a run."""

import pytest

from caransac._support.progress import _Stage
from caransac_lab.cli.train import format_figures
from caransac_lab.training.worker import TASKS


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("value", [0.0, 0.1234, 9.9999, 99.9999])
def test_the_progress_fits_a_terminal(task, value):
    stage = _Stage("confidence fundamental", 0)
    stage.update(999_999, 1_000_000, "", format_figures(dict.fromkeys(TASKS[task].shown, value)))
    for line in stage.as_text().splitlines():
        assert len(line) <= 80, line


def test_figures_are_grouped_by_training_and_validation():
    names = ("train_entropy", "val_entropy", "val_drawn", "val_geometric", "val_kept")
    text = format_figures(dict.fromkeys(names, 0.1234))
    assert text == "train entropy 0.123  val entropy 0.123 drawn 0.123 geometric 0.123 kept 0.123"
    assert format_figures({"val_auc5": 61.23}) == "val auc5 61.2"
    assert format_figures({}) == ""

"""The ablation covers every tuned number, and the documents contain its tables."""

from dataclasses import asdict, fields, is_dataclass

import numpy as np
import pytest

from caransac import Options
from caransac.tuning import DEFAULT_TUNING, Tuning
from caransac_lab.bench.studies import ablation


def test_every_tuned_number_is_changed():
    # A nested record has the numbers for photographs, which the match sets of this study do not have.
    own = {each.name for each in fields(Tuning) if not is_dataclass(getattr(DEFAULT_TUNING, each.name))}
    assert set(ablation.NUMBERS) == own
    for name, values in ablation.NUMBERS.items():
        assert values and getattr(DEFAULT_TUNING, name) not in values, name


@pytest.mark.parametrize("problem", ["E", "F"])
def test_rows_change_one_thing_and_follow_their_bases(problem):
    rows = ablation.variants(problem)
    names = list(rows)
    for name, changed in rows.items():
        Options(**{option: value for option, value in changed.items() if option != "oversampled"})
        assert names.index(ablation.base_of(name)) <= names.index(name)
        if name not in ablation.STAGES:
            base = rows[ablation.base_of(name)]
            before, after = asdict(base.get("tuning", DEFAULT_TUNING)), asdict(changed["tuning"])
            assert [each for each in before if before[each] != after[each]] == [ablation.number_of(name)]
            assert base | {"tuning": changed["tuning"]} == changed


def test_parts_of_names_select_rows_and_their_bases():
    assert list(ablation.chosen_rows("E", ["wide_reach = 5"])) == [
        "default",
        "working_set = 512",
        "wide_reach = 5.0",
        "wide_reach = 50.0",
    ]
    assert ablation.chosen_rows("F", None) == ablation.variants("F")


def test_tables_show_differences_to_the_row_beside():
    rows = {
        name: {"auc5": value, "auc1": value / 2, "auc5_interval": 0.4, "auc1_interval": 0.3, "jumps": 1.0, "ms": 2.0}
        for name, value in {
            "default": 80.0,
            "early stop": 79.0,
            "working_set = 512": 79.0,
            "wide_reach = 5.0": 76.0,
        }.items()
    }
    text = ablation.problem_table(rows)
    assert "| wide_reach = 5.0, beside working_set = 512 | -3.00 ± 0.40 | -1.50 ± 0.30 |" in text
    assert "| early stop | -1.00 ± 0.40 | -0.50 ± 0.30 |" in text


def test_sets_and_their_scenes_count_equally_and_differences_are_paired():
    weights = ablation.pair_weights(["a/x", "a/x", "a/y", "b/z"])
    np.testing.assert_allclose(weights, [1 / 8, 1 / 8, 1 / 4, 1 / 2])
    rng = np.random.default_rng(0)
    sums = [each.sum() for each in rng.normal(0, 2, (4000, 50))]
    assert ablation.interval(rng.normal(0, 2, 5000)) == pytest.approx(1.96 * np.std(sums) * 10, rel=0.05)

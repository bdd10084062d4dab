"""When to stop."""

import math

import pytest

from caransac.robust.stopping import samples_needed


def test_samples_needed_is_the_textbook_formula():
    assert samples_needed(0.5, 5, 0.99) == pytest.approx(math.log(0.01) / math.log(1 - 0.5**5))
    assert samples_needed(1.0, 5, 0.99) == 1
    assert samples_needed(0.0, 5, 0.99) == math.inf
    assert samples_needed(1e-9, 7, 0.99) > 1e50

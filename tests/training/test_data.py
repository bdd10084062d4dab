"""Where training pairs come from, and that augmentation keeps their truth."""

import numpy as np
import pytest

from caransac.training.data import PairSource, augment, synthetic_pair, without_geometry


def test_augmented_pairs_keep_their_truth(rng):
    for _ in range(20):
        pair = synthetic_pair(rng)
        if (before := pair.right_matches()).sum() < 50:
            continue
        augmented = augment(pair, rng)
        after = augmented.right_matches()
        if len(after) == len(before):
            assert np.mean(after == before) > 0.99
        else:
            assert after.mean() == pytest.approx(before.mean(), abs=4 * np.sqrt(0.25 / len(after)))


def test_the_source_draws_by_the_generator_alone(rng):
    source = PairSource([synthetic_pair(rng) for _ in range(5)], synthetic_share=0.5)
    first, second = (source.draw(np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first.points1, second.points1)


def test_points_matched_at_random_have_no_truth(rng):
    pair = without_geometry(synthetic_pair(rng), rng)
    assert pair.R is None
    assert pair.right_matches().sum() == 0

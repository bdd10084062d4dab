"""Sources of training pairs, and augmentation that keeps their truth."""

from dataclasses import replace

import numpy as np
import pytest

from caransac_lab.training.data import PairSource, augment, filtered, synthetic_pair, without_geometry


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


def test_the_source_depends_only_on_the_generator(rng):
    source = PairSource([synthetic_pair(rng) for _ in range(5)], synthetic_share=0.5)
    first, second = (source.draw(np.random.default_rng(9)) for _ in range(2))
    assert np.array_equal(first.points1, second.points1)


def test_points_matched_at_random_have_no_truth(rng):
    pair = without_geometry(synthetic_pair(rng), rng)
    assert pair.R is None
    assert pair.right_matches().sum() == 0


@pytest.mark.parametrize("kind", ["ratio", "confidence"])
def test_a_filter_leaves_the_matches_of_the_best_scores(rng, kind):
    scores = rng.permutation(300) / 300.0
    pair = replace(
        synthetic_pair(rng), points1=np.c_[scores, scores], points2=np.ones((300, 2)), scores=scores, score_kind=kind
    )
    sizes = []
    for _ in range(40):
        left = filtered(pair, rng)
        kept, size = left.points1[:, 0], len(left.points1)
        assert np.array_equal(np.sort(kept), np.sort(scores)[:size] if kind == "ratio" else np.sort(scores)[-size:])
        assert left.scores is None or np.array_equal(left.scores, kept)
        sizes.append(size)
    assert 8 <= min(sizes) < 20 and max(sizes) > 100
    assert 8 <= len(filtered(replace(pair, scores=None), rng).points1) <= 300

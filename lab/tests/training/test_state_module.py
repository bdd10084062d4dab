"""The state network in torch: same results as in numpy, and exchange of weights."""

import numpy as np
import pytest
import torch

from caransac.learned.network_layout import DEFAULT_LAYOUT, PAPER_LAYOUT
from caransac_lab.training.state_module import StateModule


@pytest.mark.parametrize("layout", [DEFAULT_LAYOUT, PAPER_LAYOUT])
@pytest.mark.parametrize("width", [8, 16, 32, 128])
def test_torch_and_numpy_networks_agree(rng, width, layout):
    torch.manual_seed(0)
    module = StateModule(36, width, layout)
    ours = module.to_numpy()
    side = rng.normal(size=(300, 36)).astype(np.float32)
    scores = (rng.uniform(size=(4, 300)) * (rng.uniform(size=(4, 300)) < 0.4)).astype(np.float32)
    (state, ours_p), in_torch = ours.first(side), module.init_state(torch.from_numpy(side))
    for _ in range(4):
        assert np.allclose(state, in_torch.detach().numpy(), atol=1e-5, rtol=1e-5)
        probabilities = torch.sigmoid(module.log_odds(in_torch)).detach().numpy()
        assert np.abs(ours_p - probabilities).max() < 1e-5
        (state, ours_p), in_torch = ours.update(state, scores), module.next_state(in_torch, torch.from_numpy(scores))


def test_weights_survive_the_round_trip(network):
    other = StateModule(36, 16)
    other.load_weights(network.to_weights())
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), other.parameters(), strict=True))
    with pytest.raises(ValueError, match="another shape"):
        StateModule(36, 8).load_weights(network.to_weights())


def test_training_may_start_from_weights_with_fewer_features():
    torch.manual_seed(3)
    small, large = StateModule(36, 8), StateModule(40, 8)
    large.start_from(small.to_weights())
    side = torch.randn(5, 40)
    assert torch.allclose(large.init_state(side), small.init_state(side[:, :36]))
    with pytest.raises(ValueError, match="another shape"):
        small.start_from(large.to_weights())

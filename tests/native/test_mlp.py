"""Small networks, compared with numpy."""

import numpy as np
import pytest

from caransac import kernels
from caransac.kernels import Activation

pytestmark = pytest.mark.kernels

FUNCTIONS = {
    Activation.NONE: lambda x: x,
    Activation.LEAKY_RELU: lambda x: np.maximum(x, 0.01 * x),
    Activation.TANH: np.tanh,
}


def floats(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def by_numpy(x, layers):
    for weight, bias, activation, residual in layers:
        x = FUNCTIONS[activation](x @ weight + bias) + (x if residual else 0)
    return x


@pytest.mark.parametrize("activation", list(Activation))
@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(0, 3, 2), (1, 1, 1), (50, 8, 4), (5, 36, 32), (103, 64, 17), (9, 1024, 128)]
)
def test_layers_match_numpy(rng, rows, inputs, outputs, activation):
    x, layer = floats(rng, rows, inputs), (floats(rng, inputs, outputs), floats(rng, outputs), activation, False)
    assert np.allclose(kernels.mlp([x], [layer]), by_numpy(x, [layer]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 500])
def test_networks_match_numpy(rng, rows):
    widths = [7, 20, 20, 20, 3]
    layers = [
        (floats(rng, a, b) / np.float32(np.sqrt(a)), floats(rng, b), activation, a == b)
        for a, b, activation in zip(widths[:-1], widths[1:], [*Activation, Activation.NONE], strict=True)
    ]
    x = floats(rng, rows, 7)
    assert np.allclose(kernels.mlp([x], layers), by_numpy(x, layers), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 47, 48, 200])
@pytest.mark.parametrize("residual", [False, True])
def test_inputs_may_have_any_strides(rng, rows, residual):
    parts = [floats(rng, 3, rows).T, floats(rng, rows, 24)[:, 5:21], floats(rng, 2 * rows, 1)[::-2]]
    layer = (floats(rng, 20, 20), floats(rng, 20), Activation.LEAKY_RELU, residual)
    expected = by_numpy(np.concatenate(parts, axis=1), [layer])
    assert np.allclose(kernels.mlp(parts, [layer]), expected, rtol=1e-4, atol=1e-4)
    strided = floats(rng, rows, 30)[:, 4:24]
    assert np.allclose(kernels.mlp([strided], [layer]), by_numpy(strided, [layer]), rtol=1e-4, atol=1e-4)


def test_tanh_is_accurate_everywhere():
    x = np.concatenate([np.linspace(-12, 12, 10_001), [-1e30, -1e-30, 0, 1e-30, 1e30]])[:, None].astype(np.float32)
    layer = (np.ones((1, 1), np.float32), np.zeros(1, np.float32), Activation.TANH, False)
    assert np.abs(kernels.mlp([x], [layer]) - np.tanh(x)).max() < 5e-7


@pytest.mark.parametrize(
    ("weight", "bias", "residual", "message"),
    [
        ((4, 5), 5, False, "row for every input"),
        ((3, 5), 4, False, "bias"),
        ((3, 5), 5, True, "keep the width"),
        ((3, 129), 129, False, "128"),
    ],
)
def test_shapes_must_fit(weight, bias, residual, message):
    layer = (np.zeros(weight, np.float32), np.zeros(bias, np.float32), Activation.NONE, residual)
    with pytest.raises(ValueError, match=message):
        kernels.mlp([np.zeros((2, 3), np.float32)], [layer])


def test_inputs_must_fit():
    layer = (np.zeros((3, 5), np.float32), np.zeros(5, np.float32), Activation.NONE, False)
    for x, layers, message in [
        ([np.zeros((2, 3))], [], "empty"),
        ([], [layer], "empty"),
        ([np.zeros((2, 2)), np.zeros((1, 1))], [layer], "same length"),
        ([np.zeros((2, 1025))], [layer], "1024"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernels.mlp(x, layers)

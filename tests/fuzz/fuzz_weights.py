"""Weights files: those of the package with a few arrays changed, and a small estimate with accepted ones."""

import functools
import zipfile

import harness
import numpy as np

with harness.instrument():
    from caransac import Camera, Options, estimate_relative_pose
    from caransac.learned.state_network import load_network
    from caransac.learned.weights_file import read_weights
    from caransac_lab.networks.match_filter import load_filter
    from caransac_lab.networks.sample_quality import load_quality
    from caransac_lab.networks.weights import find_weights

POINTS = np.random.default_rng(0).uniform(0, 600, (2, 40, 2))
CAMERA = Camera("SIMPLE_PINHOLE", (800.0, 320.0, 240.0), 640, 480)
LOADERS = {"default": load_network, "filter": load_filter, "sample-quality": load_quality}


@functools.cache
def _package(name: str) -> dict[str, np.ndarray]:
    return read_weights(find_weights(name))


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    name = decisions.choose((*LOADERS, "raw"))
    with harness.folder() as place:
        path = place / "weights.npz"
        if name == "raw":
            path.write_bytes(decisions.rest())
        else:
            _save(path, _changed(decisions, _package(name)))
        harness.refusing(lambda: _use(name, path))


def _changed(decisions: harness.Decisions, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    weights = {name: array.copy() for name, array in weights.items()}
    for _ in range(decisions.number(4)):
        name = sorted(weights)[int.from_bytes(decisions.take(2), "little") % len(weights)]
        kind = decisions.number(5)
        if kind == 0:
            del weights[name]
        elif kind == 1:
            weights[name] = decisions.array()
        elif kind == 2 and weights[name].dtype == np.float32:
            weights[name] = weights[name] * np.float32(np.clip(decisions.real(), -1e30, 1e30))
        elif kind == 3:
            weights[decisions.text()] = decisions.array()
        elif kind == 4 and weights[name].size and weights[name].dtype == np.float32:
            weights[name].flat[decisions.number(weights[name].size)] = decisions.real()
        if not weights:
            break
    return weights


def _save(path, weights: dict[str, np.ndarray]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in weights.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))


def _use(name: str, path) -> None:
    if name in ("filter", "sample-quality"):
        return LOADERS[name](path)
    options = Options(weights=path, rounds=2, samples_per_round=32)
    result = estimate_relative_pose(*POINTS, CAMERA, CAMERA, options=options)
    assert result.confidence is None or 0 <= result.confidence <= 1
    assert np.isfinite(result.probabilities).all()
    return result


if __name__ == "__main__":
    harness.fuzz(one_input)

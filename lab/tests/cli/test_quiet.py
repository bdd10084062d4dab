"""``--quiet`` of the commands of the lab: it suppresses progress and notes, but not results."""

import pytest

from caransac_lab.cli import main


def run(capsys, *arguments):
    """Run a command without and with -q. Check that only the first writes to stderr, and return both outputs."""
    assert main([*arguments]) == 0
    loud = capsys.readouterr()
    assert loud.err
    assert main([*arguments, "-q"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    return loud.out, quiet.out


@pytest.mark.slow
def test_bench_prints_only_the_table(tmp_path, capsys):
    methods = ("--methods", "LM-LO", "--timing-pairs", "0", "--workers", "1", "--out", str(tmp_path))
    loud, quiet = run(capsys, "bench", "synthetic:1", *methods)
    assert "| LM-LO " in quiet
    assert quiet == loud


def test_train_prints_the_path_of_the_weights(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch", reason="needs torch")
    from caransac_lab.training import trainer

    def train(_, out, *, progress, **__):
        progress("train", 1, 1, {"train_loss": 0.5})
        return out / "weights.npz"

    monkeypatch.setattr(trainer, "train", train)
    _, out = run(capsys, "train", "--out", str(tmp_path))
    assert f"Weights: {tmp_path / 'weights.npz'}" in out

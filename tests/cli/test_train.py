"""``caransac train``: what it shows while it runs."""

from caransac.cli.train import format_figures


def test_the_figures_fit_a_terminal():
    names = ("train_entropy", "val_entropy", "val_drawn", "val_geometric", "val_kept")
    text = format_figures(dict.fromkeys(names, 0.1234))
    assert text == "train entropy 0.123  val entropy 0.123 drawn 0.123 geometric 0.123 kept 0.123"
    assert len(text) <= 78  # with the two blanks before it
    assert format_figures({}) == ""

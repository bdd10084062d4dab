"""Synthetic image pairs with known truth, for demonstration, tests and training."""

from caransac.synthetic.pair import SyntheticPair
from caransac.synthetic.point_cloud import make_pair
from caransac.synthetic.realistic import random_pair

__all__ = ["SyntheticPair", "make_pair", "random_pair"]

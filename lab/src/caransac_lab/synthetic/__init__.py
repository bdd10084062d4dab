"""Synthetic scenes as hard as real ones, with known truth: random pairs and planes, degenerate and deceptive scenes."""

from caransac_lab.synthetic.planes import random_plane
from caransac_lab.synthetic.realistic import random_pair

__all__ = ["random_pair", "random_plane"]

"""Synthetic image pairs with known truth, for demonstration, tests and training."""

from caransac.synthetic.plane_pair import PlanePair
from caransac.synthetic.planes import random_plane
from caransac.synthetic.point_cloud import make_pair
from caransac.synthetic.realistic import random_pair
from caransac.synthetic.synthetic_pair import SyntheticPair
from caransac.synthetic.synthetic_query import SyntheticQuery, make_query

__all__ = ["PlanePair", "SyntheticPair", "SyntheticQuery", "make_pair", "make_query", "random_pair", "random_plane"]

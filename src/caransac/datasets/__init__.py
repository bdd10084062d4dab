"""Correspondences with ground truth: readers, one per layout; docs/formats.md describes them."""

from caransac.datasets.dataset import Dataset, make_synthetic, open_dataset
from caransac.datasets.npz import read_npz, write_npz
from caransac.datasets.pair import Pair
from caransac.datasets.pair_list import match_pair_list, read_pair_list
from caransac.datasets.posebench import read_posebench
from caransac.datasets.queries import Query, read_queries
from caransac.datasets.ransac_tutorial import read_ransac_tutorial

__all__ = [
    "Dataset",
    "Pair",
    "Query",
    "make_synthetic",
    "match_pair_list",
    "open_dataset",
    "read_npz",
    "read_pair_list",
    "read_posebench",
    "read_queries",
    "read_ransac_tutorial",
    "write_npz",
]

"""Correspondences with ground truth. There is one reader per layout; docs/formats.md describes them."""

from caransac_lab.datasets.dataset import Dataset, make_synthetic, open_dataset
from caransac_lab.datasets.npz import read_npz, write_npz
from caransac_lab.datasets.pair import Pair
from caransac_lab.datasets.pair_list import match_pair_list, read_pair_list
from caransac_lab.datasets.posebench import read_posebench
from caransac_lab.datasets.queries import Query, read_queries
from caransac_lab.datasets.ransac_tutorial import read_ransac_tutorial, split_score_kind

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
    "split_score_kind",
    "write_npz",
]

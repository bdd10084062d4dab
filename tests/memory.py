"""The memory that an object keeps."""

from functools import partial
from types import FunctionType, ModuleType

import numpy as np

from caransac.kernels import Correspondences
from caransac.learned.state_network import StateNetwork


def kept_bytes(root: object) -> int:
    """Return the bytes of all arrays and correspondences that an object refers to, also through functions.

    Networks are not counted, because all results share them.
    """
    total, seen, left = 0, {}, [root]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | StateNetwork):
            continue
        seen[id(each)] = each
        if isinstance(each, np.ndarray):
            if isinstance(each.base, np.ndarray):
                left.append(each.base)
            else:
                total += each.nbytes
        elif isinstance(each, Correspondences):
            total += len(each) * (2 + each.points2.shape[1]) * (8 + 4)  # in double and in single precision
        elif isinstance(each, FunctionType):
            left += [cell.cell_contents for cell in each.__closure__ or ()]
        elif isinstance(each, partial):
            left += [each.func, each.args, each.keywords]
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each
        elif hasattr(each, "__dict__"):
            left.append(vars(each))
    return total

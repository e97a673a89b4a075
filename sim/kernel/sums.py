"""Sums by group, typed."""

import numpy as np

from .arrays import Floats, Ints


def group_sums(group: Ints, amounts: Floats, groups: int) -> Floats:
    """(groups,) sums of ``amounts`` by ``group``, both of one length."""
    return np.asarray(np.bincount(group, weights=amounts, minlength=groups), dtype=np.float64)

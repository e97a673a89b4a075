"""Processes of others on this host: observed, and what steers the cores that they run on."""

from .masks import left_behind
from .observing import observe

__all__ = ["left_behind", "observe"]

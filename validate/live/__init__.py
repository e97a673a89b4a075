"""Processes of others on this host: observed, and the cores that they run on steered."""

from .masks import left_behind
from .observing import observe
from .steering import Steered, give_back, steer

__all__ = ["Steered", "give_back", "left_behind", "observe", "steer"]

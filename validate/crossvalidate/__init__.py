"""Predictions against real runs on this host: suites, rounds, rows and their summary."""

from .rows import Row
from .session import Found, Session
from .suite import Case, Suite, load_suite

__all__ = ["Case", "Found", "Row", "Session", "Suite", "load_suite"]

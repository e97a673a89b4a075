"""Workloads of real engines: from the counts and plans that engines and tools print."""

from .importers import Found, read_profiles
from .timed_rates import Timed
from .workload_file import workload_text

__all__ = ["Found", "Timed", "read_profiles", "workload_text"]

"""Measures this host: microbenchmarks of the native engine, put into a machine file.

``PARTS`` are the microbenchmarks, a module each; ``measure_pass`` runs them all once, within their
time, ``measure_host`` in several passes.
"""

from .machine_file import measured_description
from .passes import measure_host, merged
from .session import PARTS, Result, measure_pass

__all__ = ["PARTS", "Result", "measure_host", "measure_pass", "measured_description", "merged"]

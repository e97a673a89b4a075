"""Measures this host: microbenchmarks of the native engine, put into a machine file.

``PARTS`` are the microbenchmarks, a module each; ``measure_host`` runs them within their time.
"""

from .machine_file import measured_description
from .session import PARTS, Result, measure_host

__all__ = ["PARTS", "Result", "measure_host", "measured_description"]

"""Fits a machine's low-level parameters to measurements, for ``numatwin calibrate``."""

from .calibration import Calibration, as_json, calibrate

__all__ = ["Calibration", "as_json", "calibrate"]

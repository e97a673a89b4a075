"""All that validation has of transactions on a cluster."""

from __future__ import annotations

from ..descriptor import Late, Microbenchmark, Validation
from .published import BLINDNESS, PUBLISHED

VALIDATION = Validation(
    published=PUBLISHED,
    blindness=BLINDNESS,
    measured={"processes": Microbenchmark(Late(".commits.measured_processes", "measure"), 3.0)},
    described=Late(".commits.measured_processes", "described"),
    calibration=Late(".commits.process_costs", "CALIBRATION"),
)

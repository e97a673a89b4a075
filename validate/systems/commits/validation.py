"""All that validation has of transactions on a cluster."""

from __future__ import annotations

from ..descriptor import Late, Microbenchmark, Validation
from .published import CONDITIONS, PUBLISHED, SOURCE

VALIDATION = Validation(
    published=PUBLISHED,
    blindness=SOURCE.blindness,
    conditions=CONDITIONS,
    measured={"processes": Microbenchmark(Late(".commits.measured_processes", "measure"), 3.0)},
    described=Late(".commits.measured_processes", "described"),
    calibration=Late(".commits.process_costs", "CALIBRATION"),
)

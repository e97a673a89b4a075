"""All that validation has of ERIS."""

from __future__ import annotations

from ..descriptor import Late, Microbenchmark, Validation
from .published import CONDITIONS, PUBLISHED, SOURCE

VALIDATION = Validation(
    published=PUBLISHED,
    blindness=SOURCE.blindness,
    conditions=CONDITIONS,
    measured={
        "routing": Microbenchmark(Late(".eris.engine_steps", "measure_routing"), 1.0),
        "index": Microbenchmark(Late(".eris.engine_steps", "measure_index"), 4.0, once=True),
        "loop": Microbenchmark(Late(".eris.engine_loop", "measure"), 2.0),
        "walk": Microbenchmark(Late(".eris.engine_loop", "measure_walk"), 4.0),
    },
    described=Late(".eris.engine_loop", "described"),
    calibration=Late(".eris.calibration", "CALIBRATION"),
    predicted={"routing": Late(".eris.engine_predictions", "routing_measured_s")},
    entry_bytes={"index": Late(".eris.engine_predictions", "key_bytes")},
    traffic_cases=Late(".eris.traffic_cases", "traffic_cases"),
)

"""Published results of tasks on NUMA machines, none of which a model predicts yet.

Adaptive data placement and task stealing in a column store, 2016; elastic allocation of cores,
2018.
"""

from __future__ import annotations

from .descriptor import Validation

_PLACER = "no model of task queues with stealing and of the data placer"
_ALLOCATOR = "no model of core allocation, of threads that migrate and of first-touch placement"

VALIDATION = Validation(
    unanswered={
        "hana-fig10": _PLACER,
        "hana-fig11-low": _PLACER,
        "hana-steal-worst": _PLACER,
        "hana-part-worst": _PLACER,
        "hana-thresholds": _PLACER,
        "elastic-modes": _ALLOCATOR,
        "elastic-ratio": _ALLOCATOR,
        "elastic-energy": _ALLOCATOR,
    }
)

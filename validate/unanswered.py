"""Published results of the modelled systems that no model can predict yet, and why."""

from __future__ import annotations

from collections.abc import Mapping

_UNIT = "no model of the hub's Global Reference Unit"
_PLACER = "no model of task queues with stealing and of the data placer"
_ALLOCATOR = "no model of core allocation, of threads that migrate and of first-touch placement"

UNANSWERED: Mapping[str, str] = {
    "gru-fig3": f"{_UNIT}; planes tell a steady state, not what a scan costs to begin",
    "gru-fig4, by the unit": _UNIT,
    "gru-fig5, by the unit": _UNIT,
    "gru-fig6": _UNIT,
    "gru-tab2": "no access-path chooser, which would be trained on runs of both paths",
    "gru-opt": "no access-path chooser, which would be trained on runs of both paths",
    "hana-fig10": _PLACER,
    "hana-fig11-low": _PLACER,
    "hana-steal-worst": _PLACER,
    "hana-part-worst": _PLACER,
    "hana-thresholds": _PLACER,
    "elastic-modes": _ALLOCATOR,
    "elastic-ratio": _ALLOCATOR,
    "elastic-energy": _ALLOCATOR,
}

"""Hosts of one node that were measured, with figures of one's choice."""

from collections.abc import Sequence

from numatwin.topologies.measurements import HostState, Kind, Measurement, Parameters, Reading
from numatwin.topologies.schema import MachineDescription, Memory, NodeGroup, NodeType
from numatwin.validate.measure import Result
from numatwin.validate.measure.layout import Layout, NodeLayout


def figure(
    name: str, value: float, kind: Kind, *, spread: float = 0.0, noisy: bool = False, **of: object
) -> Measurement:
    """Of nine repetitions, with quartiles a ``spread`` of the value away."""
    ends = (Reading(value * (1 - spread), kind), Reading(value * (1 + spread), kind))
    return Measurement(
        name=name,
        value=Reading(value, kind),
        quartiles=ends,
        repetitions=9,
        noisy=noisy,
        method="made up",
        parameters=Parameters.model_validate({"node": 0, "home": 0, **of}),
    )


def measured(figures: Sequence[Measurement], *, cores: int = 1, **state: object) -> Result:
    """A host on which these were measured."""
    description = MachineDescription(
        name="host",
        node_types={"node": NodeType(cores=cores, caches=(), memory=Memory())},
        nodes=(NodeGroup(id=0, type="node"),),
    )
    layout = Layout(description, (NodeLayout(0, (0,), (0,), 1 << 30, 1 << 20),), (), ())
    host = HostState.model_validate({"date": "2026-01-01", "version": "0", **state})
    return Result(layout, host, tuple(figures), (), None)

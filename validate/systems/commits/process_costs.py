"""What an engine of transactions takes on a host, as calibration fits it: messages by transport and
operation, steps on blocks.

A machine file has tables of single steps for these (``engines.commits``). Sizes and counts of a
table were measured together, in one state of the host; what differs from session to session is the
level. So one factor is fitted for each transport and operation, and for each step on blocks.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar, get_args

from ....inputs import Quantity
from ....inputs.quantities import size_text
from ....sim.systems.commits.facts import (
    ENGINE,
    BlockCost,
    CommitFacts,
    EndCost,
    EndOperation,
    host_facts,
)
from ....sim.systems.commits.host_steps import BlockCosts
from ....topologies.machine import Machine
from ....topologies.measurements import Measurement
from ....topologies.schema import MachineDescription
from ...calibrate.observation import NO_PARAMETER, HostReader, Kind, Observation, size_of
from ...calibrate.parameters import Key, Parameter
from ...calibrate.predictions import Candidate, EngineCalibration, Quantities

MESSAGE = Kind("message", scaled=True)
BLOCK = Kind("block in shared memory", scaled=True)
Costs = TypeVar("Costs", BlockCost, EndCost)
KEYS = ("blocks", "messages")
PARTS = ("post", "serve", "complete")
BLOCK_STEPS = ("get", "update", "insert")


def process_parameters(machine: Machine) -> list[Parameter]:
    """The parameters of these tables; none where the machine has none."""
    costs = host_facts(machine.description)
    if costs is None:
        return []
    found = [
        Parameter(("blocks", step), f"{step} of blocks in shared memory", "×", 1.0, 1e-3, 1e3)
        for step in BLOCK_STEPS
    ]
    for transport, curves in costs.engine.transports.items():
        found += [
            Parameter(
                ("messages", transport, operation), f"{operation} over {transport}", "×",
                1.0, 1e-3, 1e3,
            )
            for operation in dict.fromkeys(end.operation for end in curves.ends)
        ]  # fmt: skip
    return found


def block_s(tried: Candidate, observation: Observation) -> float:
    """A step on a block among others."""
    costs = host_facts(tried.base.description)
    if costs is None:
        return float("nan")
    step = observation.at["step"]
    known = BlockCosts(costs.engine.blocks).seconds(
        step, observation.at["size"], observation.at["region"]
    )
    return known * tried.values.get(("blocks", step), 1.0)


def message_s(tried: Candidate, observation: Observation) -> float:
    """What an end does for each of so many requests; NaN for one that the machine's table lacks."""
    costs = host_facts(tried.base.description)
    ends: Iterable[EndCost] = ()
    if (
        costs is not None
        and (transport := costs.engine.transports.get(observation.at["transport"])) is not None
    ):
        ends = transport.ends
    for end in ends:
        if (end.operation, end.size.value, end.count) == (
            observation.at["operation"], observation.at["size"], observation.at["count"],
        ):  # fmt: skip
            part: Quantity = getattr(end, observation.at["part"])
            key = ("messages", observation.at["transport"], observation.at["operation"])
            return part.value * tried.values.get(key, 1.0)
    return float("nan")


def with_fitted_factors(
    description: MachineDescription, machine: Machine, quantities: Quantities
) -> MachineDescription:
    """``description`` with the tables of ``machine`` times what was fitted."""
    facts = host_facts(machine.description)
    if facts is None:
        return description
    factors = quantities(
        lambda values: {k: values[k] for k in values if k[0] in KEYS}, lambda k: [k]
    )
    return description.with_facts(ENGINE, _fitted(facts.engine, factors))


def _fitted(facts: CommitFacts, quantities: Mapping[Key, Quantity]) -> CommitFacts:
    blocks = tuple(
        _scaled(block, {step: quantities.get(("blocks", step)) for step in BLOCK_STEPS})
        for block in facts.blocks
    )
    transports = {}
    for name, transport in facts.transports.items():
        ends = tuple(
            _scaled(end, dict.fromkeys(PARTS, quantities.get(("messages", name, end.operation))))
            for end in transport.ends
        )
        transports[name] = transport.model_copy(update={"ends": ends})
    return facts.model_copy(update={"blocks": blocks, "transports": transports})


def _scaled(costs: Costs, factors: Mapping[str, Quantity | None]) -> Costs:
    return costs.model_copy(
        update={name: _times(getattr(costs, name), factor) for name, factor in factors.items()}
    )


def _times(value: Quantity, factor: Quantity | None) -> Quantity:
    """The value with a fitted factor on it, and the range of that."""
    if factor is None:
        return value
    fitted, low, high = (
        float(f"{value.value * f:.4g}") for f in (factor.value, factor.low, factor.high)
    )
    return Quantity(fitted, low, high, factor.source)


def _block(reader: HostReader, measurement: Measurement) -> Observation | str:
    size, region = size_of(measurement), measurement.parameters.region
    if size is None or region is None:
        return NO_PARAMETER
    step = measurement.name.rsplit("-", 1)[-1]
    label = f"{step} of {size_text(size)} among {size_text(region.value)}"
    at = {"step": step, "size": size, "region": region.value}
    return reader.observation(BLOCK, measurement, label, at, size_bytes=size)


def _message(reader: HostReader, measurement: Measurement) -> Observation | str:
    """One end of messages over a transport."""
    _, part, operation = measurement.name.split("-", 2)
    size, count = size_of(measurement), measurement.parameters.batch
    transport = measurement.parameters.transport
    if size is None or count is None or transport is None:
        return NO_PARAMETER
    label = f"{part} {operation} over {transport}, {size_text(size)}, {count} at once"
    at = {
        "transport": str(transport), "operation": operation, "part": part, "size": size,
        "count": count,
    }  # fmt: skip
    return reader.observation(MESSAGE, measurement, label, at, size_bytes=size)


CALIBRATION = EngineCalibration(
    parameters=process_parameters,
    readers={
        **{f"step-block-{step}": _block for step in BLOCK_STEPS},
        **{f"step-{part}-{verb}": _message for part in PARTS for verb in get_args(EndOperation)},
    },
    predictions={BLOCK: block_s, MESSAGE: message_s},
    written=with_fitted_factors,
)

"""Core times of the engine's loops: the parameters that are fitted of them, and what a machine file
has of them then.

A loop has a factor on all of its times, and each of its steps one on its own: how fast a core gets
through a loop is one thing, how its steps differ another, which takes more measurements to tell.
A time begins as the machine's part ``engines.eris`` has it, or as its instructions take; with a
fitted one the machine has such a part, and predicts the native engine, of which it was measured.
"""

from collections.abc import Mapping

from ....inputs import Quantity
from ....sim.machine.defaults import ASSUMED_CLOCK_HZ, ASSUMED_IPC
from ....sim.systems.eris.costs import INSTRUCTIONS
from ....sim.systems.eris.facts import ENGINE, ErisFacts
from ....topologies.machine import Machine
from ....topologies.schema import MachineDescription
from ...calibrate.parameters import Key, Parameter
from ...calibrate.predictions import Quantities

LOOPS: Mapping[str, tuple[str, ...]] = {
    "walking": ("tree_level", "tree_entry", "upsert_entry", "upsert_shared"),
    "routing": ("generate", "route_level", "route_split", "flush_fixed", "flush_line"),
    "receiving": ("receive",),
    "scanning": (
        "scan_line_sum",
        "scan_line_sum_32",
        "scan_line_bitmap",
        "scan_line_bitmap_32",
        "scan_position",
    ),
    "moving": ("flatten_key", "rebuild_key", "link_level"),
}
# Curves of the engine, by size, that a loop's factor is on too.
CURVES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "walking": (("walk", "lookup"), ("walk", "upsert")),
    "routing": (("route", "time"),),
}
# A field of the engine's costs: its name; of a curve also the point's position and field.
Path = tuple[str | int, ...]


def eris_facts(machine: Machine) -> ErisFacts | None:
    """What the machine file has of the engine's loops; raises InputError."""
    return machine.description.facts_of(ENGINE, ErisFacts)


def loop_parameters(machine: Machine) -> list[Parameter]:
    """A factor for each loop and for each step; none without cores."""
    if not any(node.cores for node in machine.nodes):
        return []
    engine = eris_facts(machine) or ErisFacts()
    found = []
    for loop, steps in LOOPS.items():
        found.append(_factor(("loop", loop), 1.0))
        for step in steps if len(steps) > 1 else ():
            own: Quantity | None = getattr(engine, step)
            start = 1.0 if own is None else own.value / counted_s(machine, step)
            found.append(_factor(("core", step), start))
    return found


def _factor(key: Key, start: float) -> Parameter:
    return Parameter(key, f"core time of {key[1]}", "×", start, 1e-3, 1e3, core=True)


def counted_s(machine: Machine, step: str) -> float:
    """Time of the step's instructions on the first core."""
    first = next(node for node in machine.nodes if node.cores)
    rate = (first.clock_Hz or ASSUMED_CLOCK_HZ) * (first.ipc or ASSUMED_IPC)
    return float(getattr(INSTRUCTIONS, step)) / rate


def loop_times_s(machine: Machine, values: Mapping[Key, float]) -> dict[Path, float]:
    """Times with the factors that ``values`` have; those without one are left out."""
    engine = eris_facts(machine) or ErisFacts()
    found: dict[Path, float] = {}
    for loop, steps in LOOPS.items():
        factor = values.get(("loop", loop))
        for step in steps:
            alone = values.get(("core", step))
            if factor is None and alone is None:
                continue
            own: Quantity | None = getattr(engine, step)
            if step.startswith("route_") and engine.route:
                continue  # the curve has it
            if alone is not None:
                start_s = alone * counted_s(machine, step)
            else:
                start_s = counted_s(machine, step) if own is None else own.value
            found[step,] = start_s * (1.0 if factor is None else factor)
        for curve, field in CURVES.get(loop, ()) if factor is not None else ():
            for index, point in enumerate(getattr(engine, curve)):
                found[curve, index, field] = getattr(point, field).value * factor
    return found


def with_times(engine: ErisFacts | None, times: Mapping[Path, Quantity]) -> ErisFacts:
    """The engine's costs with these times in place of its own."""
    made = engine or ErisFacts()
    changes: dict[str, object] = {
        str(path[0]): time for path, time in times.items() if len(path) == 1
    }
    for curve in {str(path[0]) for path in times if len(path) == 3}:
        points = list(getattr(made, curve))
        for path, time in times.items():
            if path[0] == curve:
                index = int(path[1])
                points[index] = points[index].model_copy(update={str(path[2]): time})
        changes[curve] = tuple(points)
    return made.model_copy(update=changes)


def loop_of(path: Path) -> str:
    """The loop that a time belongs to."""
    name = str(path[0])
    return next(
        loop
        for loop, steps in LOOPS.items()
        if name in steps or any(curve == name for curve, _ in CURVES.get(loop, ()))
    )


def with_fitted_times(
    description: MachineDescription, machine: Machine, quantities: Quantities
) -> MachineDescription:
    """``description`` with the times of ``machine`` that a factor of its loop, of its step, or both
    concern.
    """
    times = quantities(
        lambda values: loop_times_s(machine, values),
        lambda path: (("core", str(path[0])), ("loop", loop_of(path))),
    )
    if not times:
        return description
    return description.with_facts(ENGINE, with_times(eris_facts(machine), times))

"""Assumed costs of the loops of an engine of ERIS's design where no host was measured."""

from collections.abc import Iterator

from ...machine.assumptions import LESS, MORE, Assumption, Place, Variant
from ...planes.plane import Experiment
from .costs import INSTRUCTIONS, ErisCosts
from .facts import ENGINE, PUBLISHED
from .routing import in_one_piece
from .spec import ErisSystem

SOURCE = "Counted by callgrind in benchmarks/eris_loops, g++ 12.2 -O3 (see InstructionCounts)"
NARROW_BYTES = 4.0
# Which loops run, by what a scenario has.
WALKS = ("tree_level", "tree_entry")
MESSAGES = ("route_level", "route_split", "flush_fixed", "flush_line", "receive")
COPIES = ("flatten_key", "rebuild_key", "link_level")


def loops_assumed(experiment: Experiment) -> Iterator[Assumption]:
    """The loops that the workload runs and that the machine file does not have times of."""
    costs, wanted = ErisCosts(experiment.machine), loops_in_play(experiment)
    if costs.first_node is None:
        return
    rate = float(costs.instructions_per_s[costs.first_node])
    measured = costs.facts
    yield from _overlap(costs, wanted)
    for name in wanted:
        count = getattr(INSTRUCTIONS, name)
        if getattr(measured, name, None) is None:
            low, high = (
                Variant(
                    times * count, _stated(costs, name, f"{times * count / rate * 1e9:.15g} ns")
                )
                for times in (LESS, MORE)
            )
            yield Assumption(f"instructions of {name}", count, "", SOURCE, low, high)


def _overlap(costs: ErisCosts, loops: tuple[str, ...]) -> Iterator[Assumption]:
    """Lines that walks have in flight where neither they nor the engine's walks were measured."""
    facts = costs.facts
    if "tree_level" not in loops or costs.first_node is None:
        return
    if facts is not None and (facts.lines_in_flight or facts.walk):
        return
    assumed = float(costs.walk_misses[costs.first_node])
    low, high = (
        Variant(lines, {("machine", "engines", ENGINE, "lines_in_flight"): lines})
        for lines in (1.0, assumed**2)
    )
    source = "Not known: from one at a time to all that a core holds; their geometric mean"
    yield Assumption("lines in flight of a walk", assumed, "", source, low, high)


def _stated(costs: ErisCosts, name: str, value: str) -> dict[Place, object]:
    place: Place = ("machine", "engines", ENGINE)
    found: dict[Place, object] = {(*place, name): value}
    if costs.implementation is PUBLISHED:  # it stays ERIS as published
        found[(*place, "implementation")] = "published"
    return found


def loops_in_play(experiment: Experiment) -> tuple[str, ...]:
    """The names of the loops that run and take any time."""
    system, workload = experiment.system, experiment.workload
    assert isinstance(system, ErisSystem)
    partitioned = system.placement == "partitioned"
    found: list[str] = []
    for operation in workload.at(0.0).asked:
        if operation.kind == "scan":
            narrow = workload.objects[operation.object].entry_size.value <= NARROW_BYTES
            found.append(f"scan_line_{operation.result}")
            if operation.result == "positions":
                found.append("scan_position")
            elif narrow:
                found[-1] += "_32"
        else:
            assert operation.keys is not None
            plain = in_one_piece(operation.keys) or not partitioned
            found.append("generate" if plain else "generate_ranked")
            found += WALKS if operation.kind != "route" else ()
        # A value out of line is overwritten there; its key is looked up.
        stored = workload.objects[operation.object]
        if operation.kind == "upsert" and stored.value_size.value <= system.inline_values.value:
            found.append("upsert_entry" if partitioned else "upsert_shared")
        found += MESSAGES if partitioned and operation.kind != "scan" else ()
    if partitioned and set(experiment.policy_names.values()) - {"none"}:
        found += COPIES
    return tuple(dict.fromkeys(found))

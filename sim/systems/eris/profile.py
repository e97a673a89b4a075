"""The profile of an engine that works as ERIS does, or as its baselines do: a user's own.

Its facts are instructions and cache lines, so that they hold on another machine too: there they
take as long as its cores need for them.
"""

from collections.abc import Mapping

from ....inputs import Quantity
from ....topologies import Machine
from ....topologies.schema_types import Fact
from ...machine.costs import CostModel
from ...planes.plane import Experiment
from ..descriptor import EngineProfile
from .assumptions import loops_in_play
from .costs import INSTRUCTIONS
from .facts import ErisFacts
from .spec import ErisSystem

LINES, LINES_COUNTED = "level_lines", 1.0
SERIAL = {"lookup", "upsert"}


class ErisProfile(EngineProfile):
    """What an engine takes for each of its steps; what is left out is as ERIS has it.

    ``generate``: instructions per operation beside its walk: making it, and its result
    (``…_ranked`` where keys are drawn by rank). ``tree_level``: per step of a walk down the index,
    a level of its tree; ``tree_entry``: the rest of a lookup; ``upsert_entry``: of an upsert by the
    data's owner; ``upsert_shared``: by any thread. ``scan_line_…``: per cache line of a scan, by
    its result, of values of 8 bytes or (``…_32``) up to 4; ``scan_position``: per value found.
    ``lookup_serial``, ``upsert_serial``: of a lookup or upsert of data that all threads share, what
    one thread at a time does, under a lock; left out, nothing. ``level_lines``: cache lines that a
    step of a walk touches, which miss as the caches are full or not.
    """

    generate: Fact | None = None
    generate_ranked: Fact | None = None
    tree_level: Fact | None = None
    tree_entry: Fact | None = None
    upsert_entry: Fact | None = None
    upsert_shared: Fact | None = None
    scan_line_sum: Fact | None = None
    scan_line_sum_32: Fact | None = None
    scan_line_bitmap: Fact | None = None
    scan_line_bitmap_32: Fact | None = None
    scan_line_positions: Fact | None = None
    scan_position: Fact | None = None
    lookup_serial: Fact | None = None
    upsert_serial: Fact | None = None
    level_lines: Fact | None = None

    @classmethod
    def in_play(cls, experiment: Experiment) -> Mapping[str, float]:
        loops = loops_in_play(experiment)
        found = {
            name: float(getattr(INSTRUCTIONS, name)) for name in loops if name in cls.model_fields
        }
        return found | ({LINES: LINES_COUNTED} if "tree_level" in loops else {})

    @classmethod
    def serial(cls, experiment: Experiment) -> Mapping[str, float]:
        assert isinstance(experiment.system, ErisSystem)
        costs = CostModel(experiment.machine)
        assert costs.first_node is not None
        rate = float(costs.instructions_per_s[costs.first_node])
        kinds = {operation.kind for operation in experiment.workload.at(0.0).asked}
        shared = experiment.system.placement != "partitioned"
        return {f"{kind}_serial": rate for kind in kinds & SERIAL if shared}

    def on(self, machine: Machine) -> ErisFacts:
        costs = CostModel(machine)
        first = costs.first_node
        assert first is not None, "a scenario's machine has cores"
        each_s = 1.0 / float(costs.instructions_per_s[first])
        times = {
            name: _time(fact, each_s)
            for name in type(self).model_fields
            if name != LINES and (fact := getattr(self, name)) is not None
        }
        lines = self.level_lines
        if lines is not None and lines.range is not None:
            lines = lines.model_copy(update={"doubtful": True})
        return ErisFacts(implementation="published", level_lines=lines, **times)


def _time(count: Fact, each_s: float) -> Quantity:
    """What so many instructions take."""
    low, high = count.range or (count.value, count.value)
    doubtful = count.range is not None
    return Quantity(count.value * each_s, low * each_s, high * each_s, count.source, doubtful)

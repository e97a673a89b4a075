"""The machine's costs for an engine of ERIS's design: its loops, hand-overs and walks."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....inputs import Quantity
from ....topologies import Machine
from ...machine.costs import CostModel, Scales
from ...machine.hand_overs import TIME_MIN_S, HandOvers
from .facts import ENGINE, ErisFacts, implementation_of
from .instructions import INSTRUCTIONS, InstructionCounts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ErisCosts(CostModel):
    """``facts``: what the engine was measured to take on the machine, None for ERIS as published;
    ``implementation``: which engine it is. ``instructions``: of its loops, ``counted`` or as many
    as pass in the time that was measured.
    """

    def __init__(
        self,
        machine: Machine,
        scales: Scales | None = None,
        instructions: InstructionCounts = INSTRUCTIONS,
    ) -> None:
        super().__init__(machine, scales)
        self.facts = machine.description.facts_of(ENGINE, ErisFacts)
        self.implementation = implementation_of(self.facts)
        self.counted = self.instructions = instructions
        if self.first_node is not None and self.facts is not None:
            rate = float(self.instructions_per_s[self.first_node]) / self.scales.cores
            self.instructions = instructions.measured(self.facts, rate)
        for path in machine.doubtful:
            if path.startswith(f"engines.{ENGINE}."):
                self.warnings.append(f"uncertain value used: {path}")

    @cached_property
    def unscaled(self) -> ErisCosts:
        """The costs of the machine as it is."""
        return self if self.scales == Scales() else ErisCosts(self.machine)

    # -- walks and scans --------------------------------------------------------------------------

    @property
    def level_lines(self) -> float:
        """Cache lines that a step of a walk touches."""
        fact = None if self.facts is None else self.facts.level_lines
        return 1.0 if fact is None else fact.value

    def random_misses(self, instructions: float) -> Floats:
        """(n,) as of any program, but no more than this engine's walks have under way.

        How far the misses of a batch overlap is the engine's: where it was neither measured nor
        stated, between one at a time and all that the core holds, the geometric mean.
        """
        held, facts = super().random_misses(instructions), self.facts
        if facts is not None and facts.lines_in_flight is not None:
            return np.asarray(np.minimum(held, facts.lines_in_flight.value * self.scales.misses))
        if facts is not None and facts.walk:
            return held
        return np.asarray(np.sqrt(held * self.scales.misses))

    @property
    def misses_name(self) -> str:
        """The engine's own lines, where a core would hold more."""
        held = super().random_misses(self.counted.tree_level)
        own = self.walk_misses < held
        return "lines in flight" if own[self.cores > 0].any() else super().misses_name

    @cached_property
    def walk_misses(self) -> Floats:
        """(n,) lines that one core has under way while it walks a tree for a batch of keys: the
        batch makes the loads independent.
        """
        return self.random_misses(self.counted.tree_level)  # instructions, however long they take

    def walk_misses_of(self, core_node: Ints) -> Floats:
        """(n,) ``walk_misses`` of a core where the cores (C,) of these nodes work."""
        return self.random_misses_of(core_node, self.counted.tree_level)

    def scan_from_last_s(self, core_node: Ints) -> Floats | None:
        """(n,) what a line of a scan takes longer on a core that gets it from the last cache, where
        the cores (C,) of these nodes scan; None where it was not measured.

        Whatever a scan makes of a line, that is the same: its core waits at the end of each run of
        lines that were asked for ahead.
        """
        seen = self.facts
        if seen is None or seen.scan_line_cached is None or seen.scan_line_sum is None:
            return None
        alone = seen.scan_line_cached.value
        all_s = alone if (t := seen.scan_line_cached_together) is None else max(t.value, alone)
        one_s = alone + (all_s - alone) * self.others_working(core_node)
        return np.maximum(one_s - seen.scan_line_sum.value, 0.0) / self.scales.latency

    # -- hand-overs -------------------------------------------------------------------------------

    @cached_property
    def hand_overs(self) -> HandOvers:
        """As the machine has them, or as the engine was seen to do them.

        Within a node a line takes a ``message``. One that a core writes and another reads takes
        ``handed_line`` on both together, and the reader ``handed_line_read``.
        """
        of_machine, facts, engine = super().hand_overs, self.facts, self.implementation
        line_s = of_machine.line_s
        if facts is not None and facts.message is not None:
            line_s = line_s.copy()
            line_s[np.diag_indices_from(line_s)] = facts.message.value / self.scales.latency
        write, read = of_machine.write_slots, of_machine.read_slots
        if facts is not None and facts.handed_line is not None:
            both_s, reader = facts.handed_line.value, facts.handed_line_read
            read_s = both_s / 2.0 if reader is None else reader.value
            write, read = (
                np.diag(line_s) * self.scales.latency / max(each_s, TIME_MIN_S) * self.scales.misses
                for each_s in (both_s - read_s, read_s)
            )
        additive = engine.additive_lines and facts is not None and facts.handed_line is not None
        return HandOvers(line_s, write, read, additive=additive, own_cached=engine.cached_own)

    @cached_property
    def read_waits(self) -> float:
        """Waits for a line of another core's of who takes what others have sent, however much.

        0 where they were not measured: then all waits are put to who flushes.
        """
        return self._waits(None if self.facts is None else self.facts.message_read)

    @cached_property
    def part_waits(self) -> float:
        """The same for each header of a part of a batch: where it lies, only the one before it
        tells. Headers of whole batches lie evenly, and are there when they are read.
        """
        return self._waits(None if self.facts is None else self.facts.part_read)

    def _waits(self, time: Quantity | None) -> float:
        """How often one waits for another core's line in that time; 0 if it is not known."""
        if time is None or self.facts is None or self.facts.message is None:
            return 0.0
        return time.value / max(self.facts.message.value, TIME_MIN_S)

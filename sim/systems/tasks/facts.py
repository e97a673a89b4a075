"""Fields of a machine file for engines of this kind: ``engines: {tasks: …}``."""

from __future__ import annotations

from ....inputs import Strict
from ....inputs.quantities import Bandwidth, Duration, DurationOrZero

ENGINE = "tasks"

# Per page of 4 KiB where the machine's file does not say: the largest of three machines of 4 to 32
# sockets, which differ by 7% (Psaroudakis et al., PVLDB 10 (2016)).
MOVE_PAGE_S = 63e-6
PARTITION_PAGE_S = 109e-6


class LoopTimes(Strict):
    """What an entry takes in each loop of a measured engine, its data in a core's caches: see
    ``OperatorInstructions``, which it stands in for.
    """

    scan_row: DurationOrZero
    scan_match: DurationOrZero
    value_id: DurationOrZero
    dictionary_value: DurationOrZero
    group: DurationOrZero
    sum: DurationOrZero
    merge_group: DurationOrZero
    merge_dictionary: DurationOrZero


class TasksFacts(Strict):
    """Facts of one machine; none is needed.

    ``stealing_threshold``: memory throughput of a task below which it pays to let other sockets
    steal it. It is a result, and used by scenarios with ``stealing: adaptive`` alone.
    ``move_page``, ``partition_page``: time per page of 4 KiB to move a table part to another node
    (unloaded here, loaded there), and to split it. ``loops``: of the engine as it was measured on
    this host (``numatwin machine measure``, part ``queries``).
    """

    stealing_threshold: Bandwidth | None = None
    move_page: Duration | None = None
    partition_page: Duration | None = None
    loops: LoopTimes | None = None

    @property
    def threshold_Bps(self) -> float | None:
        """The stealing threshold in bytes per second."""
        return None if self.stealing_threshold is None else self.stealing_threshold.value

    @property
    def move_s(self) -> float:
        """Time per page that is moved."""
        return MOVE_PAGE_S if self.move_page is None else self.move_page.value

    @property
    def partition_s(self) -> float:
        """Time per page of a part that is split."""
        return PARTITION_PAGE_S if self.partition_page is None else self.partition_page.value

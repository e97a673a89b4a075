"""Fields of a machine file for engines of this kind: ``engines: {tasks: …}``.

Instructions of a column store's loops, for one entry each. A scenario may give others.

Counted by hand from the loops that each line describes, not measured; the machine's instructions
per cycle say how long they take. Waiting for memory and shared caches comes on top.
"""

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ....inputs import Strict
from ....inputs.quantities import Bandwidth, Duration, DurationOrZero

ENGINE = "tasks"

# Per page of 4 KiB where the machine's file does not say: the largest of three machines of 4 to 32
# sockets, which differ by 7% (Psaroudakis et al., PVLDB 10 (2016)).
MOVE_PAGE_S = 63e-6
PARTITION_PAGE_S = 109e-6
WORD_ROWS = 64  # of a filter's result


class LoopTimes(Strict):
    """What an entry takes in each loop of a measured engine, its data in a core's caches. It has
    the fields of ``OperatorInstructions``, which it replaces.
    """

    scan_row: DurationOrZero
    scan_match: DurationOrZero
    scan_word: DurationOrZero | None = None
    value_id: DurationOrZero
    dictionary_value: DurationOrZero
    group: DurationOrZero
    sum: DurationOrZero
    merge_group: DurationOrZero
    merge_dictionary: DurationOrZero
    build: DurationOrZero | None = None
    probe: DurationOrZero | None = None
    match: DurationOrZero | None = None


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


Instructions = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]


class OperatorInstructions(Strict):
    """Instructions per entry of each step."""

    scan_row: Instructions = 2.5
    """Per row and column of a filter: unpack an id of the index vector and compare it with the
    bounds of a range. For four ids at once: two loads, shuffle, shift, mask, two comparisons, their
    conjunction, moving and storing the result's bits (Willhalm et al., SIMD-Scan, PVLDB 2 (2009),
    with SSE). With AVX2, less than a cycle per row (Willhalm et al., ADMS 2013)."""
    scan_match: Instructions = 5.0
    """Per row that a filter finds: the lowest bit of its result, cleared, as a position."""
    scan_word: Instructions = 25.0
    """Per 64 rows among which a filter finds any, as positions are made of its bits: a branch that
    nobody can guess (15 cycles), as many have been found as there are."""
    value_id: Instructions = 8.0
    """Per id that is taken from an index vector at a position: multiply by its bits, address,
    unaligned load, shift, mask, loop."""
    dictionary_value: Instructions = 5.0
    """Per value that is looked up in a dictionary: address, load, store, loop."""
    group: Instructions = 14.0
    """Per entry: the ids of its group combined and hashed, its slot found and compared."""
    sum: Instructions = 4.0
    """Per entry and summed column: address, load, add, store."""
    merge_group: Instructions = 20.0
    """Per group of a task, as all are merged: read, hashed, found in the result, compared."""
    merge_dictionary: Instructions = 40.0
    """Per value of a part's dictionary, as those of all parts become one: a step of a merge of
    sorted lists, with a branch that nobody can guess (15 cycles), and its new id stored."""
    build: Instructions = 16.0
    """Per entry of a hash table: key hashed, its bucket addressed and locked, key and position
    stored, bucket released."""
    probe: Instructions = 14.0
    """Per entry that looks for its key: hashed, its bucket addressed, compared."""
    match: Instructions = 6.0
    """Per result entry of a join: both positions stored."""

    def positions(self, selectivity: float) -> float:
        """Per row of a filter that finds this share: making positions of its result's bits."""
        any_of_word = 1.0 - (1.0 - selectivity) ** WORD_ROWS
        return self.scan_match * selectivity + self.scan_word / WORD_ROWS * any_of_word

    @model_serializer(mode="wrap")
    def _only_stated(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is not stated gives way to measured times when it is read again, too."""
        return {name: n for name, n in write(self).items() if name in self.model_fields_set}


def instructions_of(
    stated: OperatorInstructions, facts: TasksFacts | None, per_s: float
) -> OperatorInstructions:
    """Those that ``stated`` names; of the others, as many as take the times in the machine's
    ``facts``, at ``per_s`` a second, or the usual ones."""
    if facts is None or facts.loops is None:
        return stated
    measured = {
        name: time.value * per_s
        for name, time in facts.loops
        if time is not None and name not in stated.model_fields_set
    }
    return stated.model_copy(update=measured)

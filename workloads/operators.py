"""The schema of a query's operators in a workload file: a form for each kind.

A query is a graph of named operators. Operators pass entries on: a scan the rows that its filter
lets through, a join the pairs that match, an aggregation its groups. To add a kind of operator, see
``sim/systems/tasks/README.md``.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..inputs import DescriptionError, Quantity, Strict
from ..inputs.facts import Fact
from ..inputs.names import Name
from ..inputs.quantities import Duration, DurationOrZero, Size, SizeOrZero
from .key_specs import Count

COLUMNS_MAX = 100
AMOUNT_MAX = 1e12

ZERO_B = Quantity(0.0, 0.0, 0.0)

Selectivity = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(strict=True, ge=0, le=AMOUNT_MAX, allow_inf_nan=False)]
Hint = Annotated[Count, Field(le=1_000_000)]


def _listed(raw: Any) -> Any:
    return (raw,) if isinstance(raw, str) else raw


ColumnName = Annotated[str, Field(min_length=1, max_length=130)]
"""A column; ``table.column`` where several tables that are read have one of that name."""
Columns = Annotated[
    tuple[ColumnName, ...],
    BeforeValidator(_listed, json_schema_input_type=ColumnName | tuple[ColumnName, ...]),
    Field(min_length=1, max_length=COLUMNS_MAX),
]
NoOrSomeColumns = Annotated[
    tuple[ColumnName, ...],
    BeforeValidator(_listed, json_schema_input_type=ColumnName | tuple[ColumnName, ...]),
    Field(max_length=COLUMNS_MAX),
]
Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(_listed, json_schema_input_type=Name | tuple[Name, ...]),
    Field(max_length=COLUMNS_MAX),
]


# A copy engine by the name that its makers gave it.
ENGINE_NAMES = {"gru": "copy-engine", "gru-noncoherent": "copy-engine-noncoherent"}


def _access_path(raw: Any) -> Any:
    return ENGINE_NAMES.get(raw, raw) if isinstance(raw, str) else raw


AccessPath = Annotated[
    Literal["cpu", "copy-engine", "copy-engine-noncoherent"],
    BeforeValidator(
        _access_path,
        json_schema_input_type=Literal[
            "cpu", "copy-engine", "copy-engine-noncoherent", "gru", "gru-noncoherent"
        ],
    ),
]


Intermediates = Literal["pooled", "materialised", "pipelined"]


class OperatorSpec(Strict):
    """What all operators have in common.

    ``after``: operators that must be done before, though nothing of theirs is read.
    ``concurrency``: tasks at most, as the system says where it is left out. ``task_class``: tasks
    of one class are alike for a scheduler; by default those of all operators of this kind.
    """

    kind: str
    after: Names = ()
    concurrency: Hint | None = None
    task_class: Name | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The operators whose entries this one reads; the first says where its tasks run."""
        return ()

    @property
    def columns_read(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Fields that name columns, with these names."""
        return ()


class _Making(OperatorSpec):
    """An operator with results. ``intermediates``: where they lie, as the system says where it is
    left out.
    """

    intermediates: Intermediates | None = None


class _Following(_Making):
    """An operator on the entries of one other. ``pipelined``: each of its tasks follows the one
    task that made its entries; else it waits until all are made.
    """

    input: Name
    pipelined: bool = False

    def _fits(self) -> None:
        if self.pipelined and self.after:
            raise DescriptionError(
                ("after",), "a pipelined operator waits only for its input: expected none"
            )

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.input,)


class ScanSpec(_Making):
    """Reads the index vectors of ``columns`` of a ``table``, all rows; the filter lets the part
    ``selectivity`` of the rows through. Without columns it stands for all rows, and does nothing.
    ``result``: what it writes, the positions of rows, or a bit for each where these take less.
    ``path``: whether threads load the data themselves (``cpu``), or a copy engine copies them ahead
    (``copy-engine``, ``copy-engine-noncoherent``); left out, a policy says, and without one threads
    do.
    """

    kind: Literal["scan"]
    table: Name
    columns: NoOrSomeColumns = ()
    selectivity: Selectivity = 1.0
    result: Literal["smaller", "positions"] = "smaller"
    path: AccessPath | None = None

    def _fits(self) -> None:
        if not self.columns and self.selectivity < 1:
            raise DescriptionError(
                ("selectivity",), "a filter reads columns: expected some in 'columns', or 1"
            )

    @property
    def columns_read(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("columns", self.columns),)


class MaterialiseSpec(_Following):
    """Looks up the values of ``columns`` for each entry of its input, in their dictionaries."""

    kind: Literal["materialise"]
    columns: Columns

    @property
    def columns_read(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("columns", self.columns),)


class AggregateSpec(_Following):
    """Groups the entries of its input by columns, and sums others: each task for itself, then all
    are merged. ``groups``: how many there are at most; by default the product of the columns'
    distinct values. ``selectivity``: the part of the groups that a condition on them lets through.
    """

    kind: Literal["aggregate"]
    group_by: NoOrSomeColumns = ()
    groups: Count | None = None
    sums: NoOrSomeColumns = ()
    selectivity: Selectivity = 1.0

    @property
    def columns_read(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("group_by", self.group_by), ("sums", self.sums)

    def _fits(self) -> None:
        super()._fits()
        if self.groups is not None and not self.group_by:
            raise DescriptionError(("groups",), "without group_by there is one group")


class JoinSpec(_Making):
    """An equi-join: a hash table of the entries of ``build``, probed by those of ``probe``.

    ``build_key``, ``probe_key``: the columns that are compared. ``matches``: result entries for
    each entry of ``probe``, on average.
    """

    kind: Literal["join"]
    build: Name
    probe: Name
    build_key: ColumnName
    probe_key: ColumnName
    matches: Amount = 1.0

    @property
    def sources(self) -> tuple[str, ...]:
        return self.probe, self.build

    @property
    def columns_read(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("build_key", (self.build_key,)), ("probe_key", (self.probe_key,))


class StructureSpec(Strict):
    """So many ``accesses`` per entry, each to any line of ``size`` bytes; the part ``written`` of
    the lines that they fetch is changed, and written back. Those of one ``name`` and size are one
    structure, in all operators of a query."""

    size: Size
    accesses: Amount
    written: Selectivity = 0.0
    name: Name | None = None


class LoopSpec(Strict):
    """What a loop over entries demands for each of them.

    It executes ``instructions``, at ``ipc`` a cycle (by default as the machine file says of index
    code); reads ``read`` and writes ``written`` bytes in order; and accesses a ``structure`` of so
    many bytes ``accesses`` times at random, or each of several ``structures``, as a miss curve says
    that has several steps. ``structure_of``: one for ``all`` tasks, or one for each ``task``, which
    lies on its own node. ``at_once``: random accesses that it has under way, at most what a core
    can; by default as many as its reorder window holds. ``page_faults``: first touches of pages of
    4 KiB, besides those of results that are mapped anew.
    """

    instructions: Amount = 0.0
    ipc: Fact | None = None
    read: SizeOrZero = ZERO_B
    accesses: Amount = 0.0
    structure: Size | None = None
    structures: Annotated[tuple[StructureSpec, ...], Field(max_length=COLUMNS_MAX)] | None = None
    structure_of: Literal["all", "task"] = "all"
    written: SizeOrZero = ZERO_B
    at_once: Fact | None = None
    page_faults: Amount = 0.0

    def _fits(self) -> None:
        if self.accesses and self.structure is None:
            raise ValueError("missing field 'structure': what the accesses go to")

    @property
    def accessed(self) -> tuple[StructureSpec, ...]:
        """All structures."""
        found = self.structures or ()
        if self.structure is not None:
            found = (StructureSpec(size=self.structure, accesses=self.accesses), *found)
        return found


class LockSpec(Strict):
    """A section under the lock ``name``, which one thread holds at a time: ``times`` per entry, for
    ``held`` each. Operators of all queries that give the same name share the lock."""

    name: Name
    held: Duration
    times: Amount = 1.0


class CustomSpec(LoopSpec, _Making):
    """An operator of a user's own, by what it demands for each entry.

    Its entries are the rows of ``table``, or those of its ``inputs`` together, or ``entries``, a
    number. It passes ``results`` entries on for each. What it demands is that of a loop, or of
    several ``loops``, which it goes through one after the other for a few entries at a time, as
    vectorised engines do: instructions and misses of one loop overlap, those of two do not.
    ``memory``: where what it reads in order, and a structure of all, lies: with the ``part`` of its
    table, with the thread that reads (``local``), or on all nodes in turn (``interleaved``).
    ``row_group``: entries that a task takes at least. ``task``: time of each of its tasks beyond
    its entries, besides what the system says of all tasks. ``lock``: what its entries do one at a
    time, besides what its loops do.
    """

    kind: Literal["custom"]
    table: Name | None = None
    inputs: Names = ()
    entries: Count | None = None
    pipelined: bool = False
    loops: Annotated[tuple[LoopSpec, ...], Field(min_length=1, max_length=16)] | None = None
    results: Amount = 1.0
    memory: Literal["part", "local", "interleaved"] | None = None
    row_group: Count | None = None
    task: DurationOrZero | None = None
    lock: LockSpec | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def all_loops(self) -> tuple[LoopSpec, ...]:
        """Its loops; itself where it is the only one."""
        return self.loops or (self,)

    def _fits(self) -> None:
        super()._fits()
        if self.loops is None and "instructions" not in self.model_fields_set:
            raise ValueError("missing field 'instructions' (or 'loops', which have them)")
        own = {
            name
            for name, field in LoopSpec.model_fields.items()
            if getattr(self, name) != field.default
        }
        if self.loops is not None and own:
            raise DescriptionError((min(own),), "each of its loops has its own: expected none")
        if self.table is None and not self.inputs and self.entries is None:
            raise ValueError("no entries: expected 'table', 'inputs' or 'entries'")
        if self.table is not None and (self.inputs or self.entries is not None):
            other = "inputs" if self.inputs else "entries"
            raise DescriptionError((other,), "its entries are the rows of its table: expected none")
        if self.entries is not None and self.inputs:
            raise DescriptionError(("entries",), "its entries are those of its inputs")
        if self.pipelined and (len(self.inputs) != 1 or self.after):
            raise DescriptionError(("pipelined",), "expected one operator in 'inputs', no 'after'")
        if self.memory == "part" and self.entries is not None:
            raise DescriptionError(("memory",), "without a table it has no part")


class RecordedSpec(OperatorSpec):
    """Tasks of a trace: ``file`` is CSV or Parquet, a row a task, looked for beside the workload.

    Its operators follow each other in the order in which they first appear, each when all tasks of
    the one before are done; ``structure``: size of what accesses at random go to. For its columns
    see ``task_trace.py``. It passes nothing on; other operators may come ``after`` it.
    """

    kind: Literal["recorded"]
    file: Annotated[str, Field(min_length=1, max_length=1_024)]
    structure: Size | None = None


AnyOperator = Annotated[
    ScanSpec | MaterialiseSpec | AggregateSpec | JoinSpec | CustomSpec | RecordedSpec,
    Field(discriminator="kind"),
]

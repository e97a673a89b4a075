"""The schema of a workload file: data objects, operations and their mix, clients, phases."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from ..inputs import DescriptionError, Quantity, Strict
from ..inputs.names import Name, check_name
from ..inputs.quantities import Duration, DurationOrZero, Rate, Size
from .key_specs import KEYS_MAX, AnyKeySpec, Count, UniformSpec, Whole
from .operators import AnyOperator

Weight = Annotated[float, Field(strict=True, ge=0, le=1e12, allow_inf_nan=False)]

Fields = dict[str, tuple[str, ...]]  # of each kind
TABLE_BY_COLUMN = "table by column"

BY_KEY = ("lookup", "upsert", "route", "transaction", "aggregate")
RECORDS_MAX = 1_000  # of one transaction
PARTS_MAX = 4_096
CLIENTS_MAX = 100_000

EIGHT_BYTES = Quantity(8.0, 8.0, 8.0)
SIXTEEN_BYTES = Quantity(16.0, 16.0, 16.0)  # a key and a sum
ZERO_S = Quantity(0.0, 0.0, 0.0)


class _OfKind(Strict):
    """A part whose ``kind`` says which of the other fields it has; those it must have end in +."""

    FIELDS: ClassVar[Fields]

    kind: str

    def _fits(self) -> None:
        own = self._own()
        for name in sorted(type(self).model_fields):
            missing = getattr(self, name) in (None, "")
            if name in own or missing:
                if f"{name}+" in self._fields() and missing:
                    raise ValueError(f"missing field '{name}' of kind '{self.kind}'")
            elif name in self.model_fields_set:
                raise DescriptionError((name,), f"does not belong to kind '{self.kind}'")

    @model_serializer(mode="wrap")
    def _with_its_fields(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        own = self._own()
        return {name: value for name, value in write(self).items() if name in own}

    def _own(self) -> set[str]:
        return {"kind", *(name.rstrip("+") for name in self._fields())}

    def _fields(self) -> tuple[str, ...]:
        return self.FIELDS[self.kind]


class Column(Strict):
    """A column of a table: how many ``distinct`` values of ``value_size`` it has.

    It is dictionary-encoded: an index vector with the number of a value for each row, in as few
    bits as distinguish the values, and a sorted dictionary of the values. Where it is not
    ``encoded``, it is a plain array of the values.
    """

    distinct: Count
    value_size: Size = EIGHT_BYTES
    encoded: bool = True


class DataObject(_OfKind):
    """What is stored: an ``index`` over the dense keys 0 … ``keys``-1, a ``column`` or a ``table``.

    An index is an order-preserving prefix tree: ``key_bits`` wide keys, of which each level
    consumes ``prefix_bits``. A column has ``entries`` of ``entry_size``. A table is stored by row
    or by column. By row it has ``records`` of ``record_size`` when a run begins, spread evenly over
    the servers that store it; one that is only inserted into may begin empty. By column it has
    ``rows`` and ``columns``, in so many ``parts`` by row when a run begins; tables of one ``group``
    are partitioned alike.
    """

    FIELDS: ClassVar[Fields] = {
        "index": ("keys+", "key_bits", "prefix_bits", "key_size", "value_size"),
        "column": ("entries+", "entry_size"),
        "table": ("records", "record_size+"),
        TABLE_BY_COLUMN: ("rows+", "columns+", "parts", "group"),
    }

    kind: Literal["index", "column", "table"]
    keys: Count | None = None
    key_bits: Annotated[Whole, Field(ge=1, le=64)] = 64
    prefix_bits: Annotated[Whole, Field(ge=1, le=16)] = 8
    key_size: Size = EIGHT_BYTES
    value_size: Size = EIGHT_BYTES
    entries: Count | None = None
    entry_size: Size = EIGHT_BYTES
    records: Annotated[Whole, Field(ge=0, le=KEYS_MAX)] = 0
    record_size: Size | None = None
    rows: Count | None = None
    columns: Annotated[dict[Name, Column], Field(min_length=1, max_length=1_000)] | None = None
    parts: Annotated[Whole, Field(ge=1, le=PARTS_MAX)] = 1
    group: Name | None = None

    def _fits(self) -> None:
        super()._fits()
        if self.keys is not None and self.keys > 2**self.key_bits:
            raise DescriptionError(
                ("keys",), f"{self.key_bits} key_bits distinguish at most {2**self.key_bits} apart"
            )
        if self.rows is None:
            return
        if self.parts > self.rows:
            raise DescriptionError(
                ("parts",), f"{self.parts} parts of {self.rows} rows: expected at most {self.rows}"
            )
        for name, column in (self.columns or {}).items():
            if column.distinct > self.rows:
                raise DescriptionError(
                    ("columns", name, "distinct"),
                    f"{column.distinct} values in {self.rows} rows: expected at most {self.rows}",
                )

    def _fields(self) -> tuple[str, ...]:
        by_column = self.rows is not None or self.columns is not None
        return self.FIELDS[TABLE_BY_COLUMN if self.kind == "table" and by_column else self.kind]


class Operation(_OfKind):
    """One kind of operation on one object, or a query; ``share``: its weight in the mix, 0: none.

    A ``route`` does nothing where it arrives: what is left is the routing of commands.
    ``keys``: which keys lookups, upserts and routes ask for, or which records a transaction.
    ``selectivity``: the part of the entries that a scan's filter lets through; ``result``: what it
    makes of them. A transaction reads ``reads`` different records of its table, changes
    ``changed_size`` bytes (all by default) of the first ``updates`` of them, and adds ``inserts``
    records to tables, by their names. A query's ``operators`` name what they read; ``clients``: how
    many ask for nothing else, so that it is no part of the mix. A join is of two tables: the
    inner one (``object``), whose join keys differ, and the ``outer``, whose tuples refer to inner
    ones as ``keys`` say; ``selectivity`` is the part of either table's tuples that find a partner.
    An aggregation has so many ``groups``, to which tuples belong as ``keys`` say, and a result of
    ``result_size`` for each.
    """

    FIELDS: ClassVar[Fields] = {
        "lookup": ("object", "share", "keys+"),
        "upsert": ("object", "share", "keys+"),
        "route": ("object", "share", "keys+"),
        "scan": ("object", "share", "selectivity", "result"),
        "transaction": ("object", "share", "keys+", "reads+", "updates", "changed_size", "inserts"),
        "query": ("share", "clients", "operators+"),
        "join": ("object", "outer+", "share", "keys+", "selectivity"),
        "aggregate": ("object", "share", "keys+", "groups+", "result_size"),
    }

    kind: Literal["lookup", "upsert", "route", "scan", "transaction", "query", "join", "aggregate"]
    object: Annotated[str, AfterValidator(check_name)] = ""
    share: Weight = 1.0
    keys: AnyKeySpec | None = None
    selectivity: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.0
    result: Literal["sum", "bitmap", "positions"] = "sum"
    reads: Annotated[Whole, Field(ge=1, le=RECORDS_MAX)] | None = None
    updates: Annotated[Whole, Field(ge=0, le=RECORDS_MAX)] = 0
    changed_size: Size | None = None
    inserts: dict[Name, Annotated[Whole, Field(ge=1, le=RECORDS_MAX)]] = Field(default_factory=dict)
    clients: Annotated[Whole, Field(ge=1, le=CLIENTS_MAX)] | None = None
    operators: Annotated[dict[Name, AnyOperator], Field(min_length=1, max_length=100)] | None = None
    outer: str = ""
    groups: Count | None = None
    result_size: Size = SIXTEEN_BYTES

    def _fits(self) -> None:
        super()._fits()
        if self.reads is not None and self.updates > self.reads:
            raise DescriptionError(
                ("updates",),
                f"{self.updates} records: expected at most {self.reads}, those that it reads",
            )

    @model_validator(mode="before")
    @classmethod
    def _by_default(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("kind") in BY_KEY:
            return {"keys": UniformSpec(), **raw}
        if isinstance(raw, dict) and raw.get("kind") == "join":
            return {"selectivity": 1.0, **raw}
        return raw


class Clients(_OfKind):
    """Who asks: ``closed``, each client waits for its answer and thinks for ``think_time``;
    ``open``, operations arrive at ``arrival_rate`` (of all operations together, such as
    ``100 M/s``). ``count``: closed clients that ask for queries of the mix.
    """

    FIELDS: ClassVar[Fields] = {"closed": ("think_time", "count"), "open": ("arrival_rate+",)}

    kind: Literal["closed", "open"] = "closed"
    think_time: DurationOrZero = ZERO_S
    arrival_rate: Rate | None = None
    count: Annotated[Whole, Field(ge=1, le=CLIENTS_MAX)] | None = None


class Change(Strict):
    """What a phase changes in an operation; what is not given stays."""

    share: Weight | None = None
    keys: AnyKeySpec | None = None


class Phase(Strict):
    """From ``start`` on, the ``operations`` named are changed, until a later phase changes them."""

    start: Duration
    name: Name
    operations: Annotated[dict[Name, Change], Field(min_length=1)]


class WorkloadDescription(Strict):
    """A workload file. The first phase, called ``start``, is what ``operations`` say."""

    name: Name
    title: str = ""
    source: str | None = None
    notes: tuple[str, ...] = ()
    objects: Annotated[dict[Name, DataObject], Field(min_length=1, max_length=1_000)]
    operations: Annotated[dict[Name, Operation], Field(min_length=1, max_length=1_000)]
    clients: Clients = Clients()
    phases: Annotated[tuple[Phase, ...], Field(max_length=10_000)] = ()

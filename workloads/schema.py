"""What a workload file may say: data objects, operations and their mix, clients, phases."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ..inputs import DescriptionError, Quantity, Strict
from ..inputs.names import Name
from ..inputs.quantities import Duration, DurationOrZero, Rate, Size
from .key_specs import KEYS_MAX, AnyKeySpec, Count, UniformSpec, Whole

Weight = Annotated[float, Field(strict=True, ge=0, le=1e12, allow_inf_nan=False)]

Fields = dict[str, tuple[str, ...]]  # of each kind

BY_KEY = ("lookup", "upsert", "route", "transaction")
RECORDS_MAX = 1_000  # of one transaction

EIGHT_BYTES = Quantity(8.0, 8.0, 8.0)
ZERO_S = Quantity(0.0, 0.0, 0.0)


class _OfKind(Strict):
    """A part whose ``kind`` says which of the other fields it has; those it must have end in +."""

    FIELDS: ClassVar[Fields]

    kind: str

    @model_validator(mode="after")
    def _has_its_fields(self) -> Self:
        own = self._own()
        for name in sorted(type(self).model_fields):
            if name in own or getattr(self, name) is None:
                if f"{name}+" in self.FIELDS[self.kind] and getattr(self, name) is None:
                    raise ValueError(f"missing field '{name}' of kind '{self.kind}'")
            elif name in self.model_fields_set:
                raise DescriptionError((name,), f"does not belong to kind '{self.kind}'")
        return self

    @model_serializer(mode="wrap")
    def _with_its_fields(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        own = self._own()
        return {name: value for name, value in write(self).items() if name in own}

    def _own(self) -> set[str]:
        return {"kind", *(name.rstrip("+") for name in self.FIELDS[self.kind])}


class DataObject(_OfKind):
    """What is stored: an ``index`` over the dense keys 0 … ``keys``-1, a ``column`` or a ``table``.

    An index is an order-preserving prefix tree: ``key_bits`` wide keys, of which each level
    consumes ``prefix_bits``. A column has ``entries`` of ``entry_size``. A table has ``records`` of
    ``record_size`` when a run begins, spread evenly over the servers that store it; one that is
    only inserted into may begin empty.
    """

    FIELDS: ClassVar[Fields] = {
        "index": ("keys+", "key_bits", "prefix_bits", "key_size", "value_size"),
        "column": ("entries+", "entry_size"),
        "table": ("records", "record_size+"),
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

    @model_validator(mode="after")
    def _fits(self) -> DataObject:
        if self.keys is not None and self.keys > 2**self.key_bits:
            raise DescriptionError(
                ("keys",), f"{self.key_bits} key_bits tell at most {2**self.key_bits} apart"
            )
        return self


class Operation(_OfKind):
    """One kind of operation on one object; ``share`` is its weight in the mix, 0 for none of it.

    A ``route`` does nothing where it arrives: what is left is the routing of commands.
    ``keys``: which keys lookups, upserts and routes ask for, or which records a transaction.
    ``selectivity``: the part of the entries that a scan's filter lets through; ``result``: what it
    makes of them. A transaction reads ``reads`` different records of its table, changes
    ``changed_size`` bytes (all by default) of the first ``updates`` of them, and adds ``inserts``
    records to tables, by their names.
    """

    FIELDS: ClassVar[Fields] = {
        "lookup": ("object", "share", "keys+"),
        "upsert": ("object", "share", "keys+"),
        "route": ("object", "share", "keys+"),
        "scan": ("object", "share", "selectivity", "result"),
        "transaction": (
            "object",
            "share",
            "keys+",
            "reads+",
            "updates",
            "changed_size",
            "inserts",
        ),
    }

    kind: Literal["lookup", "upsert", "route", "scan", "transaction"]
    object: Name
    share: Weight = 1.0
    keys: AnyKeySpec | None = None
    selectivity: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.0
    result: Literal["sum", "bitmap", "positions"] = "sum"
    reads: Annotated[Whole, Field(ge=1, le=RECORDS_MAX)] | None = None
    updates: Annotated[Whole, Field(ge=0, le=RECORDS_MAX)] = 0
    changed_size: Size | None = None
    inserts: dict[Name, Annotated[Whole, Field(ge=1, le=RECORDS_MAX)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _updates_what_it_reads(self) -> Operation:
        if self.reads is not None and self.updates > self.reads:
            raise DescriptionError(
                ("updates",),
                f"{self.updates} records: expected at most {self.reads}, those that it reads",
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _uniform_by_default(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("kind") in BY_KEY:
            return {"keys": UniformSpec(), **raw}
        return raw


class Clients(_OfKind):
    """Who asks: ``closed``, each client waits for its answer and thinks for ``think_time``;
    ``open``, operations arrive at ``arrival_rate`` (of all operations together, such as
    ``100 M/s``).
    """

    FIELDS: ClassVar[Fields] = {"closed": ("think_time",), "open": ("arrival_rate+",)}

    kind: Literal["closed", "open"] = "closed"
    think_time: DurationOrZero = ZERO_S
    arrival_rate: Rate | None = None


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

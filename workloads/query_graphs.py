"""A query's operators in an order in which each comes after those it needs, with what each reads.

What an operator can read: a scan the columns of its table, a join those of both sides, and so on;
after an aggregation only the columns that it groups by and sums are left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..inputs import DescriptionError
from ..inputs.yaml_file import Place
from .operators import (
    AggregateSpec,
    AnyOperator,
    CustomSpec,
    JoinSpec,
    MaterialiseSpec,
    OperatorSpec,
    RecordedSpec,
    ScanSpec,
)
from .schema import DataObject

NAMED_MAX = 8  # more names than these do not help in one line


@dataclass(frozen=True)
class ColumnOf:
    """A column, by the names of its table and its own."""

    table: str
    column: str


@dataclass(frozen=True)
class OperatorNode:
    """An operator of a query. ``reads``: the columns of each of its fields that name some.

    ``table``: whose parts its tasks work on; None where its entries come from no table any more.
    ``passes_on``: the columns that its results have; ``made``: of these, the ones whose
    values an operator has written down, so that what follows reads them in order.
    """

    name: str
    spec: AnyOperator
    table: str | None
    reads: Mapping[str, tuple[ColumnOf, ...]]
    passes_on: frozenset[ColumnOf]
    made: frozenset[ColumnOf]


def query_graph(
    operators: Mapping[str, AnyOperator], objects: Mapping[str, DataObject]
) -> tuple[OperatorNode, ...]:
    """The operators, each after those that it needs, else in the order given.

    Raises DescriptionError, its place counted from the operators, for one that needs what is not
    there: an operator, a table, a column; and for a cycle.
    """
    found: dict[str, OperatorNode] = {}
    for name in _in_order(operators):
        found[name] = _node(name, operators[name], found, objects)
    return tuple(found.values())


def _needs(spec: OperatorSpec) -> list[tuple[Place, str]]:
    """The operators that one needs, each with its place."""
    if isinstance(spec, JoinSpec):
        named: list[tuple[Place, str]] = [(("build",), spec.build), (("probe",), spec.probe)]
    elif isinstance(spec, CustomSpec):
        named = [(("inputs", index), source) for index, source in enumerate(spec.inputs)]
    else:
        named = [(("input",), source) for source in spec.sources]
    return named + [(("after", index), other) for index, other in enumerate(spec.after)]


def _in_order(operators: Mapping[str, AnyOperator]) -> list[str]:
    """Depth first, so that an operator comes as early as what it needs allows."""
    done: dict[str, None] = {}
    for first in operators:
        path: list[tuple[str, list[tuple[Place, str]]]] = []
        if first not in done:
            path.append((first, _needs(operators[first])))
        while path:
            name, left = path[-1]
            if not left:
                done[name] = None
                path.pop()
                continue
            place, other = left.pop(0)
            if other not in operators:
                raise DescriptionError(
                    (name, *place), f"no such operator: expected one of {_listed(operators)}"
                )
            predecessors = [name for name, _ in path]
            if other in predecessors:
                circle = [*predecessors[predecessors.index(other) :], other]
                raise DescriptionError(
                    (name, *place), f"operators wait for each other: {' after '.join(circle)}"
                )
            if other not in done:
                path.append((other, _needs(operators[other])))
    return list(done)


def _node(
    name: str,
    spec: AnyOperator,
    before: Mapping[str, OperatorNode],
    objects: Mapping[str, DataObject],
) -> OperatorNode:
    sources = [before[source] for source in spec.sources]
    for source in sources:
        if isinstance(source.spec, RecordedSpec):
            raise DescriptionError((name,), f"'{source.name}' passes nothing on: it is recorded")
    available = frozenset[ColumnOf]().union(*(source.passes_on for source in sources))
    made = frozenset[ColumnOf]()
    for source in reversed(sources):  # of what both sides of a join have, the probing side's counts
        made = (made - source.passes_on) | source.made
    table = sources[0].table if sources else None
    if isinstance(spec, (ScanSpec, CustomSpec)) and spec.table is not None:
        table = spec.table
        available |= _columns_of(table, (name, "table"), objects)
    # A join looks for each key on its own side.
    sides = {}
    if isinstance(spec, JoinSpec):
        sides = {"build_key": before[spec.build], "probe_key": before[spec.probe]}
    reads = {
        field: tuple(
            _column(text, sides[field].passes_on if field in sides else available, (name, field))
            for text in columns
        )
        for field, columns in spec.columns_read
    }
    passes_on = available
    if isinstance(spec, MaterialiseSpec):
        made |= set(reads["columns"])
    if isinstance(spec, AggregateSpec):
        passes_on = made = frozenset((*reads["group_by"], *reads["sums"]))
        table = None
    return OperatorNode(name, spec, table, reads, passes_on, made)


def _columns_of(table: str, place: Place, objects: Mapping[str, DataObject]) -> frozenset[ColumnOf]:
    stored = objects.get(table)
    if stored is None or stored.columns is None:
        tables = [name for name, described in objects.items() if described.columns is not None]
        what = "no such object" if stored is None else "it has no columns"
        raise DescriptionError(place, f"{what}: expected one of {_listed(tables)}")
    return frozenset(ColumnOf(table, column) for column in stored.columns)


def _column(text: str, available: frozenset[ColumnOf], place: Place) -> ColumnOf:
    table, _, column = text.rpartition(".")
    exact = [
        column for column in available if text in (column.column, f"{column.table}.{column.column}")
    ]
    if len(exact) == 1:
        return exact[0]
    if exact:
        tables = _listed(sorted(f"{column.table}.{column.column}" for column in exact))
        raise DescriptionError(place, f"several tables have '{text}': expected one of {tables}")
    names = sorted({column.column for column in available if not table or column.table == table})
    raise DescriptionError(
        place,
        f"no column '{column or text}' in what it reads: "
        + (f"expected one of {_listed(names)}" if names else "it has no columns any more"),
    )


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMED_MAX
    return ", ".join(listed[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")

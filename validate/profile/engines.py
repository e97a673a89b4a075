"""Which functions do the work of which operator of a plan, and how operators form pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SINK, FLOWS = "sink", "flows"


@dataclass(frozen=True)
class Engine:
    """What an engine calls things.

    ``breakers``: kinds of operators that take in all of their input before they pass anything on;
    ``joins``: those whose last input is a hash table. ``functions``: a pattern of the functions of
    an operator, ``{}`` its name in the source: those that take in (``sink``), and all others.
    ``named``: of kinds whose name there is another. ``shared``: kinds whose structures all tasks
    share. ``row_group``: rows that a task takes at least.
    """

    breakers: frozenset[str]
    joins: frozenset[str]
    functions: Mapping[str, str]
    named: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    row_group: int | None = None

    def roots(self, kind: str, part: str, names: Sequence[str]) -> list[int]:
        """Positions of the functions that begin the work of an operator's part."""
        own = self.named.get(kind, "".join(re.findall(r"[A-Za-z0-9]+", kind.title())))
        pattern = re.compile(self.functions[part].format(own))
        return [k for k, name in enumerate(names) if pattern.match(name)]


ENGINES = {
    "duckdb": Engine(
        breakers=frozenset(
            {
                *("HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "UNGROUPED_AGGREGATE", "ORDER_BY"),
                *("TOP_N", "WINDOW", "PARTITIONED_AGGREGATE", "LIMIT", "SIMPLE_AGGREGATE"),
            }
        ),
        joins=frozenset({"HASH_JOIN", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT"}),
        functions={
            SINK: r"duckdb::(?:Physical{0}::(?:Sink|Combine|Prepare|Finalize)|{0}\w*::ExecuteTask)",
            FLOWS: r"duckdb::Physical{0}::(?!Sink|Combine|Prepare|Finalize)",
        },
        named={
            "HASH_GROUP_BY": "HashAggregate",
            "PERFECT_HASH_GROUP_BY": "PerfectHashAggregate",
            "ORDER_BY": "Order",
            "TOP_N": "TopN",
            "SEQ_SCAN": "TableScan",
        },
        shared=frozenset({"HASH_JOIN", "NESTED_LOOP_JOIN"}),
        row_group=122_880,
    ),
    "postgresql": Engine(
        breakers=frozenset({"Aggregate", "Sort", "Hash", "Gather", "Gather Merge", "WindowAgg"}),
        joins=frozenset({"Hash Join"}),
        functions={SINK: r"(?:Multi)?Exec{0}$", FLOWS: r"(?:Multi)?Exec{0}$"},
        named={"Aggregate": "Agg", "WindowAgg": "WindowAgg"},
    ),
}

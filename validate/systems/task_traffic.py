"""What ``numatwin crossvalidate --traffic`` counts of queries as tasks.

Parts lie on half of a machine's nodes, whose workers are alone, or robbed by those of all others.
"""

from collections.abc import Iterator

from ...sim.run.real_planes import EMULATOR
from ...sim.run.scenario import load_scenario
from ..crossvalidate.traffic import TrafficCase
from . import placed_once

# A worker a node. What it scans for a task is more than a last-level cache of the guest holds: hits
# of what another query has just read are not modelled.
MACHINES = {"xeon-4s-ivb": (1 / 15, 4), "xeon-8s-ivb": (1 / 15, 8), "opteron-4n": (1 / 4, 4)}
ROWS_PER_NODE, CLIENTS = 4_000_000, 8
FIND = "find: {kind: scan, table: sales, columns: day, selectivity: "
QUERIES = {
    "scan": FIND + "0.5}",
    "values": FIND + "0.01}, values: {kind: materialise, input: find, columns: day}",
    "sums": FIND + "0.5}, sums: {kind: aggregate, input: find, group_by: shop, sums: day}",
    "join": "known: {kind: scan, table: items}, all: {kind: scan, table: sales}, pairs: {kind: "
    "join, build: known, probe: all, build_key: number, probe_key: item}, sums: {kind: aggregate, "
    "input: pairs, sums: day}",
}
ITEMS = 1_600_000
DAY, SHOP = "day: {distinct: 4096, value_size: 4 B}", "shop: {distinct: 100, value_size: 4 B}"
ITEM = f"{{distinct: {ITEMS}, value_size: 4 B, encoded: false}}"
TABLES = (
    f"sales: {{kind: table, rows: %d, columns: {{{DAY}, {SHOP}, item: {ITEM}}}}}, "
    f"items: {{kind: table, rows: {ITEMS}, columns: {{number: {ITEM}}}}}"
)
# How many parts, on the first half of the nodes; what idle workers of the others take; and what
# else there is.
CASES = (
    ("xeon-4s-ivb", "scan", 2, "never", ""),
    ("xeon-4s-ivb", "scan", 2, "always", ""),
    ("xeon-4s-ivb", "scan", 16, "always", ""),
    ("xeon-4s-ivb", "values", 2, "never", ""),
    ("xeon-4s-ivb", "sums", 2, "always", ""),
    ("xeon-8s-ivb", "scan", 4, "always", ""),
    ("opteron-4n", "scan", 2, "always", ""),
    ("opteron-4n", "sums", 2, "never", ""),
    ("xeon-4s-ivb", "join", 2, "never", ""),
    ("xeon-4s-ivb", "scan", 2, "always", "move"),
    ("xeon-4s-ivb", "scan", 1, "always", "partition"),
    ("opteron-4n", "scan", 1, "always", "dense"),
    ("opteron-4n", "scan", 1, "always", "adaptive"),
)
# A placer's command before all is counted; and as many cores as two clients of one task need, whose
# threads the guest's operating system moves among them: the table is on the last node.
ELASTIC = (
    "system.affinity=none",
    "system.look=20 us",
    "system.threads=4",
    "system.placement=[3]",
    "system.concurrency=1",
    "workload.clients.count=2",
    "native_horizon=20 s",
    "horizon=20 s",
    "statistics.warm_up=12 s",
)
MORE = {
    name.lower(): (f'policies.placer={{policy: "{placed_once.__file__}:{name}", period: 100 ms}}',)
    for name in ("Move", "Partition")
} | {
    name: (*ELASTIC, f"policies.cores={{policy: {name}, period: 500 ms}}")
    for name in ("dense", "adaptive")
}
HORIZONS = "200 s", "20 s"  # of the flow and the event plane


def traffic_cases(*, quick: bool = False) -> Iterator[TrafficCase]:
    """All of them, or one that is typical."""
    for machine, query, parts, stealing, more in CASES[1:2] if quick else CASES:
        scale, nodes = MACHINES[machine]
        rows, operators = ROWS_PER_NODE * nodes // 2, QUERIES[query]
        scenario = load_scenario(
            "host-queries",
            machine=machine,
            plane=EMULATOR,
            settings=(
                f"workload.objects={{{TABLES % rows}}}",
                f"workload.operations={{{query}: {{kind: query, operators: {{{operators}}}}}}}",
                f"workload.clients.count={CLIENTS}",
                f"system.placement={[*range(nodes // 2)]}",
                f"system.parts={parts}",
                "system.threads=1",
                f"system.concurrency={max(parts, nodes)}",
                # Asked more often, it keeps a worker of the guest from its tasks.
                f"policies.stealing={{policy: {stealing}, period: 500 ms}}",
                "native_horizon=10 s",
                "horizon=10 s",
                "statistics.warm_up=4 s",
                *MORE.get(more, ()),
            ),
        )
        name = f"{machine} {query} in {parts} parts, stealing {stealing}"
        yield TrafficCase(f"{name}, {more}".rstrip(", "), scenario, scale, None, horizons=HORIZONS)

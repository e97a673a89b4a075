"""Writes the bundled workloads in the shape of TPC-H: ``python tools/tpch.py``.

All figures follow from the TPC Benchmark H specification, revision 3: rows and values of a column
from clause 4.2.3 (what the database's population program fills in), parts that a filter lets
through from the substitution values of each query (clause 2.4), which are the validation ones. What
text columns hold is not worked out: their values are taken to be all different.

Integers and dates take 4 bytes, decimals 8, text as many as it has characters on average.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, expm1
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent.parent / "workloads"
CLIENTS = {1: 256, 100: 1024}

# -- dates: days from 1992-01-01 (STARTDATE). Orders until 151 days before ENDDATE, 1998-12-31.
ORDER_DAYS = 2406
SHIP = np.arange(1, 122)  # days from an order to its shipping, all alike
COMMIT = np.arange(30, 91)
RECEIPT = np.arange(1, 31)  # from the shipping
YEAR_1994, YEAR_1995, MARCH_15, SEPTEMBER_1995 = 731, 1096, 1169, 1339
LAST_SHIPPED = 2436  # 1998-09-02: 90 days before 1998-12-01
Days = npt.NDArray[np.int64]
ORDERED: Days = np.arange(ORDER_DAYS)


def shipped(wanted: Callable[[Days], npt.NDArray[np.bool_]]) -> float:
    """The part of all line items whose shipping date is wanted."""
    return float(wanted(ORDERED[:, None] + SHIP).mean())


def late_lines() -> float:
    """The part received in 1994, and late, though shipped before the date committed to (Q12)."""
    found = 0.0
    for day in SHIP:
        received = ORDERED[:, None] + day + RECEIPT
        in_year = ((received >= YEAR_1994) & (received < YEAR_1995)).mean(axis=0)
        committed = COMMIT - day
        late = [((committed > 0) & (committed < more)).mean() for more in RECEIPT]
        found += float((in_year * np.array(late)).mean()) / len(SHIP)
    return found


def open_orders() -> tuple[float, float]:
    """Of Q3: the part of the line items shipped after 15 March 1995 that were ordered before; the
    part of all orders before that have such a line. An order has 1 to 7 lines.
    """
    before = ORDERED[ORDERED < MARCH_15]
    after = (before[:, None] + SHIP > MARCH_15).mean(axis=1)
    some = np.mean([1 - (1 - after) ** lines for lines in range(1, 8)], axis=0)
    lines = after.sum() / ORDER_DAYS / shipped(lambda day: day > MARCH_15)
    return float(lines), float(some.sum() / len(before))


def large_orders() -> float:
    """The part of the orders with a quantity above 300 (Q18): seven lines of 50 each, less up to
    49 in all."""
    return comb(49 + 7, 7) / 50**7 / 7


# -- values


def drawn(values: float, draws: float) -> int:
    """How many of so many values are there after so many draws."""
    return min(round(-values * expm1(-draws / values)), int(draws))


def retail_prices(scale: int) -> npt.NDArray[np.int64]:
    """All prices of parts in cents, each once."""
    key = np.arange(1, 200_000 * scale + 1)
    return np.unique(90_000 + (key // 10) % 20_001 + 100 * (key % 1_000))


def tables(scale: int) -> dict[str, tuple[int, dict[str, tuple[int, int]]]]:
    """Rows, and of each column values and bytes, by table."""
    suppliers, parts, customers = 10_000 * scale, 200_000 * scale, 150_000 * scale
    orders, offers = 1_500_000 * scale, 800_000 * scale
    lines = {1: 6_001_215, 100: 600_037_902}[scale]
    prices = retail_prices(scale)
    extended = len(np.unique(np.outer(prices, np.arange(1, 51))))
    balances = 1_099_999  # -999.99 to 9,999.99
    return {
        "lineitem": (
            lines,
            {
                "l_orderkey": (orders, 4),
                "l_partkey": (parts, 4),
                "l_suppkey": (suppliers, 4),
                "l_linenumber": (7, 4),
                "l_quantity": (50, 8),
                "l_extendedprice": (drawn(extended, lines), 8),
                "l_discount": (11, 8),
                "l_tax": (9, 8),
                "l_returnflag": (3, 1),
                "l_linestatus": (2, 1),
                "l_shipdate": (ORDER_DAYS + 120, 4),
                "l_commitdate": (ORDER_DAYS + 60, 4),
                "l_receiptdate": (ORDER_DAYS + 149, 4),
                "l_shipinstruct": (4, 12),
                "l_shipmode": (7, 4),
                "l_comment": (lines, 27),
            },
        ),
        "orders": (
            orders,
            {
                "o_orderkey": (orders, 4),
                "o_custkey": (customers * 2 // 3, 4),
                "o_orderstatus": (3, 1),
                "o_totalprice": (orders, 8),
                "o_orderdate": (ORDER_DAYS, 4),
                "o_orderpriority": (5, 8),
                "o_clerk": (1_000 * scale, 15),
                "o_shippriority": (1, 4),
                "o_comment": (orders, 49),
            },
        ),
        "customer": (
            customers,
            {
                "c_custkey": (customers, 4),
                "c_name": (customers, 18),
                "c_address": (customers, 25),
                "c_nationkey": (25, 4),
                "c_phone": (customers, 15),
                "c_acctbal": (drawn(balances, customers), 8),
                "c_mktsegment": (5, 9),
                "c_comment": (customers, 73),
            },
        ),
        "part": (
            parts,
            {
                "p_partkey": (parts, 4),
                "p_name": (parts, 33),
                "p_mfgr": (5, 14),
                "p_brand": (25, 8),
                "p_type": (150, 21),
                "p_size": (50, 4),
                "p_container": (40, 8),
                "p_retailprice": (len(prices), 8),
                "p_comment": (parts, 14),
            },
        ),
        "supplier": (
            suppliers,
            {
                "s_suppkey": (suppliers, 4),
                "s_name": (suppliers, 18),
                "s_address": (suppliers, 25),
                "s_nationkey": (25, 4),
                "s_phone": (suppliers, 15),
                "s_acctbal": (drawn(balances, suppliers), 8),
                "s_comment": (suppliers, 63),
            },
        ),
        "partsupp": (
            offers,
            {
                "ps_partkey": (parts, 4),
                "ps_suppkey": (suppliers, 4),
                "ps_availqty": (9_999, 4),
                "ps_supplycost": (drawn(99_901, offers), 8),
                "ps_comment": (offers, 124),
            },
        ),
        "nation": (
            25,
            {
                "n_nationkey": (25, 4),
                "n_name": (25, 7),
                "n_regionkey": (5, 4),
                "n_comment": (25, 75),
            },
        ),
        "region": (5, {"r_regionkey": (5, 4), "r_name": (5, 7), "r_comment": (5, 75)}),
    }


# -- queries: name, what it stands for, operators


def queries(scale: int) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The operators of each query, as they stand in a workload."""
    rows = {name: count for name, (count, _) in tables(scale).items()}
    lines, orders, parts = rows["lineitem"], rows["orders"], rows["part"]
    year = 365 / ORDER_DAYS
    q6 = shipped(lambda day: (day >= YEAR_1994) & (day < YEAR_1995)) * 3 / 11 * 23 / 50
    q12 = late_lines() * 2 / 7
    q14 = shipped(lambda day: (day >= SEPTEMBER_1995) & (day < SEPTEMBER_1995 + 30))
    open_lines, open_of_orders = open_orders()
    segment = 1 / 5
    q3_groups = round(orders * MARCH_15 / ORDER_DAYS * segment * open_of_orders)
    large = large_orders()
    price = "l_extendedprice, l_discount"
    return [
        (
            "Q1",
            "pricing summary: line items shipped until 1998-09-02, by flag and status",
            [
                ("dates", scan("lineitem", "l_shipdate", shipped(lambda day: day <= LAST_SHIPPED))),
                (
                    "sums",
                    "{kind: aggregate, input: dates, group_by: [l_returnflag, l_linestatus], "
                    f"groups: 4, sums: [l_quantity, {price}, l_tax]}}",
                ),
            ],
        ),
        (
            "Q3",
            "shipping priority: orders of a segment before 1995-03-15 with lines shipped after it",
            [
                ("segment", scan("customer", "c_mktsegment", segment)),
                ("before", scan("orders", "o_orderdate", MARCH_15 / ORDER_DAYS)),
                ("bought", join("segment", "before", "c_custkey", "o_custkey", segment)),
                ("after", scan("lineitem", "l_shipdate", shipped(lambda day: day > MARCH_15))),
                ("open", join("bought", "after", "o_orderkey", "l_orderkey", open_lines * segment)),
                (
                    "revenue",
                    "{kind: aggregate, input: open, group_by: [l_orderkey, o_orderdate, "
                    f"o_shippriority], groups: {q3_groups}, sums: [{price}]}}",
                ),
            ],
        ),
        (
            "Q5",
            "local supplier volume: a region's customers and suppliers of one nation, in 1994",
            [
                ("customers", scan("customer", "c_nationkey", 1 / 5)),
                ("year", scan("orders", "o_orderdate", year)),
                ("bought", join("customers", "year", "c_custkey", "o_custkey", 1 / 5)),
                ("lines", scan("lineitem")),
                ("sold", join("bought", "lines", "o_orderkey", "l_orderkey", year / 5)),
                ("suppliers", scan("supplier", "s_nationkey", 1 / 5)),
                ("local", join("suppliers", "sold", "s_suppkey", "l_suppkey", 1 / 25)),
                (
                    "volume",
                    "{kind: aggregate, input: local, group_by: s_nationkey, groups: 5, "
                    f"sums: [{price}]}}",
                ),
            ],
        ),
        (
            "Q6",
            "revenue change: three filters on the line items of 1994",
            [
                ("filters", scan("lineitem", "l_shipdate, l_discount, l_quantity", q6)),
                ("revenue", f"{{kind: aggregate, input: filters, sums: [{price}]}}"),
            ],
        ),
        (
            "Q12",
            "shipping modes: late lines of two modes, by the priority of their orders",
            [
                (
                    "late",
                    scan("lineitem", "l_shipmode, l_receiptdate, l_commitdate, l_shipdate", q12),
                ),
                ("all", scan("orders")),
                ("ordered", join("late", "all", "l_orderkey", "o_orderkey", lines * q12 / orders)),
                (
                    "counts",
                    "{kind: aggregate, input: ordered, group_by: l_shipmode, groups: 2, "
                    "sums: o_orderpriority}",
                ),
            ],
        ),
        (
            "Q14",
            "promotion effect: line items of a month with their parts",
            [
                ("month", scan("lineitem", "l_shipdate", q14)),
                ("parts", scan("part")),
                ("sold", join("month", "parts", "l_partkey", "p_partkey", lines * q14 / parts)),
                ("revenue", f"{{kind: aggregate, input: sold, sums: [p_type, {price}]}}"),
            ],
        ),
        (
            "Q18",
            "large volume customers: orders of more than 300 pieces",
            [
                ("lines", scan("lineitem")),
                (
                    "large",
                    "{kind: aggregate, input: lines, group_by: l_orderkey, sums: l_quantity, "
                    f"selectivity: {short(large)}}}",
                ),
                ("orders", scan("orders")),
                ("ordered", join("large", "orders", "l_orderkey", "o_orderkey", large)),
                ("again", scan("lineitem")),
                (
                    "found",
                    join(
                        "ordered", "again", "o_orderkey", "l_orderkey", large * 7 * orders / lines
                    ),
                ),
                (
                    "sums",
                    "{kind: aggregate, input: found, group_by: [o_orderkey, o_custkey, "
                    f"o_totalprice], groups: {max(round(large * orders), 1)}, "
                    "sums: lineitem.l_quantity}",
                ),
            ],
        ),
    ]


def scan(table: str, columns: str = "", selectivity: float = 1.0) -> str:
    """A filter, or all rows."""
    if not columns:
        return f"{{kind: scan, table: {table}}}"
    return (
        f"{{kind: scan, table: {table}, columns: [{columns}], selectivity: {short(selectivity)}}}"
    )


def join(build: str, probe: str, build_key: str, probe_key: str, matches: float) -> str:
    """A join with so many matches for each row that probes."""
    return (
        f"{{kind: join, build: {build}, probe: {probe}, build_key: {build_key}, "
        f"probe_key: {probe_key}, matches: {short(matches)}}}"
    )


def short(number: float) -> str:
    """In four digits, as YAML reads it."""
    text = f"{number:.4g}"
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def written(scale: int) -> str:
    """The workload file."""
    size = f"tpch-{scale}"
    out = [
        "# yaml-language-server: $schema=../build/schemas/workload.json",
        f"# Seven query shapes of TPC-H at scale factor {scale}. Written by tools/tpch.py.",
        f"name: {size}",
        f"title: TPC-H-like mix at scale {scale}, {CLIENTS[scale]:,} clients",
        "source: TPC Benchmark H Standard Specification, revision 3 (clauses 2.4 and 4.2)",
        "notes:",
        "  - >-",
        "    Query shapes, not the benchmark: plans are fixed, results are not made, and no figure",
        "    of such a run may be compared with published TPC-H results.",
        "  - How each number follows from the specification stands in tools/tpch.py.",
        "objects:",
    ]
    for table, (rows, columns) in tables(scale).items():
        out += [f"  {table}:", "    kind: table", f"    rows: {rows:_}", "    columns:"]
        out += [
            f"      {name}: {{distinct: {distinct:_}, value_size: {size} B}}"
            for name, (distinct, size) in columns.items()
        ]
    out.append("operations:")
    for name, title, operators in queries(scale):
        out += [f"  {name}: # {title}", "    kind: query", "    operators:"]
        out += [f"      {step}: {text}" for step, text in operators]
    out.append(f"clients: {{kind: closed, count: {CLIENTS[scale]}}}")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    for scale in CLIENTS:
        (FOLDER / f"tpch-{scale}.yaml").write_text(written(scale), encoding="utf-8")

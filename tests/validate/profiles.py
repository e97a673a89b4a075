"""Files of counts and plans, and the workloads that are made of them."""

from pathlib import Path
from typing import Any

from numatwin.cli import main
from numatwin.workloads import Workload, WorkloadDescription, load_workload
from numatwin.workloads.operators import CustomSpec

GROUPS = Path(__file__).parents[2] / "docs" / "examples" / "groups.callgrind.out"

# 1,000 rows scanned and grouped twice: the sink takes 50 instructions a row, the scan 10.
CALLS = (Path(__file__).parent / "printed" / "callgrind.txt").read_text()
PLAN: dict[str, Any] = {
    "query_name": "select k, sum(v) from t group by k",
    "children": [{
        "operator_type": "HASH_GROUP_BY", "operator_cardinality": 100, "result_set_size": 1600,
        "children": [{
            "operator_type": "TABLE_SCAN", "operator_cardinality": 1000, "result_set_size": 16000,
            "operator_rows_scanned": 1000, "extra_info": {"Table": "t"}, "children": [],
        }],
    }],
}  # fmt: skip
PERF = "1000000;;instructions:u;500;100.00;;\n2000;;cache-misses;500;100.00;;\n"


def profiled(folder: Path, *words: str, **files: str) -> Workload:
    """What the command makes of files of these contents."""
    for name, text in files.items():
        (folder / name).write_text(text)
    out = folder / "made.yaml"
    names = [str(folder / name) for name in files]
    assert main(["profile", *names, "--out", str(out), *words]) == 0
    made = load_workload(out)
    assert WorkloadDescription.model_validate(made.plain) == made.description
    return made


def operators(workload: Workload) -> dict[str, CustomSpec]:
    found = workload.operations["q"].operators
    assert found is not None
    assert all(isinstance(spec, CustomSpec) for spec in found.values())
    return found  # type: ignore[return-value]


SCAN = """\
name: scan
objects:
  t: {kind: table, rows: 100_000_000, columns: {v: {distinct: 1000, encoded: false}}}
operations:
  scan:
    kind: query
    operators: {scan: {kind: custom, table: t, instructions: 2, read: 8 B, results: 0}}
clients: {kind: closed, count: 1}
"""

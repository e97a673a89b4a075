"""Tiny runs of benchmarks: each prints its figures, and hashes of its results."""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from benchmark_runs import printed_by
from emulator_needed import needs_emulator

HASH = "[0-9a-f]{16}"
OF_JOINS = "rrj", "ghj", "ghj-bloom", "rdma-ghj", "aggregation", "rdma-aggregation"
ROUTING = "routing", "with_receiving", "copy_into_cache", "copy_in_cache", "two_threads"

_ENGINE = "numatwin.engine_native._engine"
HAS_ENGINE = find_spec(_ENGINE) is not None
needs_engine = pytest.mark.skipif(not HAS_ENGINE, reason="built without libnuma")
needs_ucx = pytest.mark.skipif(
    not (HAS_ENGINE and import_module(_ENGINE).HAS_UCX), reason="needs libucx-dev"
)
needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler"
)


@dataclass(frozen=True)
class Tiny:
    """A run: ``names`` are among those of its figures, in this order, behind the script's own;
    ``told``: the pattern of what it says, which with ``twice`` is the same the second time.
    """

    script: str
    options: str
    names: tuple[str, ...]
    told: str = "(?s:.*)"
    twice: bool = False


def tiny(*of: Any, marks: Any = (), **more: Any) -> Any:
    return pytest.param(Tiny(*of, **more), marks=marks, id=f"{of[0]} {of[2][0]}")


def runs() -> Iterator[Any]:
    yield tiny(
        "native_commits",
        "--records 300 --commits 200 --repeat 1",
        ("commit", "commit/against_fabric", "commit/by_ucx"),
        r".* (\S+)\n(.* \1\n)+",  # the same commits, whichever way they went
        marks=[pytest.mark.sweep, needs_ucx, needs_compiler],
    )
    yield tiny(
        "native_joins",
        "--inner 500 --outer 2000 --groups 50 --partitions 16 --rounds 2 --repeat 1",
        tuple(f"{operator}/{transport}" for operator in OF_JOINS for transport in ("shm", "tcp")),
        "".join(f"{join}: {50 if 'agg' in join else 2000} rows\n" for join in OF_JOINS),
        marks=needs_ucx,
    )
    yield tiny(
        "native_engine",
        "--keys 20000 --seconds 0.3 --rounds 1",
        tuple(f"{k}/20000_keys{what}" for k in ("lookup", "upsert") for what in ("", "/cpu_time")),
        "(?s:.* )ee4f1db99fdab02211f9b521546970914287c22935fab1d47cd4397c38c4f8e4\n",
        marks=needs_engine,
    )
    yield tiny(
        "native_routing",
        "--owners 2 70 --buffers 1 64 --commands 50000 --repeat 2",
        (
            *(f"{owners}_owners/{case}" for owners in (2, 70) for case in ROUTING),
            *(f"70_owners/routing/{buffer}_per_buffer" for buffer in (1, 64)),
        ),
        r".* (\S+)\n(.* \1\n){3}",  # whatever the owners and threads, the same commands arrive
        marks=needs_compiler,
    )
    yield tiny(
        "native_scan",
        "--mebibytes 8 --steps 2",
        ("scan/bitmap/1_thread/10%", "scan/bitmap/2_threads/10%"),
        "native_scan: result df072eea1c3cf8ce\n",  # the same entries found, on any machine
        marks=[pytest.mark.sweep, needs_engine],
    )
    yield tiny(
        "native_measure",
        "--sizes 16384 --triad-size 3145728 --seconds 0.02 --rounds 1",
        ("latency/16_KiB",),
        "(?s:native_measure: result .*)",
        marks=[needs_engine, needs_compiler],
    )
    yield tiny(
        "native_tasks",
        "--rows 10_000 --groups 10 --build 1_000 --tasks 20 --moved 10_000 --repeat 1",
        ("group by, 10 groups, 10,000 rows", "join of 1,000 and 10,000 rows", "tasks of 64 rows"),
        marks=needs_engine,
    )
    yield tiny(
        "materialised",
        "--rows 100_000 --rounds 1 --machine zen5-2c",
        ("kept, 1 thread", "new, small pages, 1 thread", "new, huge pages, 1 thread"),
    )
    yield tiny(
        "studies",
        "--points 4 --rows 10000 --workers 0",
        ("resume 10,000 rows", "a run", "overhead"),
        "(?s:studies: rows .*)",
    )
    growth = ("4 runs", "memory of 4 runs", "12 runs", "memory of 12 runs")
    yield tiny("studies", "--points 12 --part growth", growth, "")
    yield tiny(
        "tasks",
        "--workers 16 --nodes 4 --simulated-ms 2 --reference-ms 1"
        " --runs hana_fig10_flow tpch_100_event --part 0.002",
        ("event_16_workers", "event_versus_reference", "hana_fig10_flow", "tpch_100_event"),
        r"(?s:\S+ \d{3,} .*)",
        twice=True,
    )
    yield tiny(
        "commits",
        "--repeat 1 --clients 20 --servers 3 --simulated-us 50",
        ("rsi-20x3", "kernel", "checker"),
        twice=True,
    )
    yield tiny(
        "inference_calibration",
        "--events 0 --truths 16 --draws 64 --jobs 1",
        ("flow: unknown system.page_size, 16", "flow: a run that was not measured, 16"),
    )
    facts = "8 facts of 18 figures"
    counted = (f"draws that count of 2,048, {facts}", f"weighing draws, {facts}")
    yield tiny("calibration_by_draws", "", counted, "")
    yield tiny(
        "disturbances",
        "--cases 'one-aeu: 1/2 L2' --replications 1 --jobs 1",
        ("throughput without interruptions", "p99 without interruptions"),
    )
    costs = ("cost_16_aeus", "command_cost_16_aeus")
    yield tiny(
        "eris_events",
        "--workers 8 16 --events 20000 --nodes 2 --simulated-us 500",
        (*(f"{cost}{what}" for cost in costs for what in ("", "_growth")), "fig1_16_aeus_500_us"),
        rf"(?s:(.*?events, executed {HASH}\n){{3}})",
        twice=True,
    )
    yield tiny(
        "eris_routing",
        "--simulated-us 200 --repeat 2",
        ("amd_64_aeus",),  # both planes gave this trace, or the script had failed
        rf"eris_routing/amd_64_aeus: \d{{4,}} events, trace {HASH}\n",
    )
    yield tiny(
        "event_kernel",
        "--processes 3 --events 20000 --simpy-events 2000 --repeat 2",
        ("hold/3_processes", "mm1"),
        # The same on every machine: integer picoseconds, and a logarithm of the kernel's own.
        ".* 99ae19c3fce0fe61\n.* 38a5ab5febdf3c6d\n",
        marks=needs_compiler,
    )
    yield tiny(
        "flow_plane",
        "--repeat 1 --only fig8-intel",
        ("eris-fig8-intel", "eris-fig8-intel-shared"),
        r"(flow_plane/eris-fig8-intel(-shared)?: result .*\n){2}",
    )
    yield tiny(
        "native_values",
        "--keys 20000 --sizes 1000 --seconds 0.1 --rounds 2",
        ("lookup/1000_B", "upsert/1000_B"),
        marks=needs_engine,
    )
    yield tiny(
        "native_index",
        "--keys 20000 --repeat 2 --lookups 5000",
        tuple(f"{name}/20000_dense_keys" for name in ("upsert", "memory", "lookup")),
        "(?s:.*) c349b2d5f4919aee\n",  # every answer of every turn
        marks=[pytest.mark.sweep, needs_engine, needs_compiler],
    )
    yield tiny(
        "shared_service",
        "--cores 12 --nodes 2 --simulated-us 1000",
        tuple(
            f"tasks_12_cores_{mix}{what}"
            for mix in ("stolen_10", "any")
            for what in ("", "/over_reference", "/over_one_by_one")
        ),
        # The same on every machine: a sum is rounded as the language says.
        ".*_stolen_10: 109 tasks ended\n.*_any: 84 tasks ended\n",
        marks=needs_compiler,
    )
    yield tiny(
        "emulator_traffic",
        "--mebibytes 1 --rounds 1 --processors 1 --details accesses --no-errors",
        tuple(f"accesses/{one}/1_processor" for one in ("read", "write", "random", "atomic")),
        marks=needs_emulator,
    )
    yield tiny(
        "real_engines",
        "--rows 3000 --queries topk --rounds 1 --machine xeon-4s-ivb",
        tuple(f"duckdb/topk/3000_rows/{threads}_threads" for threads in (1, 2)),
        marks=pytest.mark.skipif(
            shutil.which("valgrind") is None or find_spec("duckdb_extension_tpch") is None,
            reason="needs valgrind and duckdb-extension-tpch",
        ),
    )


@pytest.mark.parametrize("run", list(runs()))
def test_tiny_run_prints_figures_and_hashes(run: Tiny) -> None:
    options = shlex.split(run.options)
    lines, told = printed_by(run.script, *options)
    assert [line["name"] for line in lines if line["name"] in names_of(run)] == names_of(run)
    for line in lines:
        assert {"name", "value", "unit", "versus", "ratio"} <= set(line)
        assert line["value"] > 0
        assert line["ratio"] is None or line["ratio"] > 0
    assert re.fullmatch(run.told, told)
    if run.twice:
        assert printed_by(run.script, *options)[1] == told


def names_of(run: Tiny) -> list[str]:
    return [f"{run.script}/{name}" for name in run.names]

"""Counts of callgrind, perf and a run without tools: who they belong to, and caches in them."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from profiles import CALLS, GROUPS, PERF, PLAN, operators, profiled
from refusals import told_by

from numatwin.cli import main
from numatwin.sim.machine.caches import hit_rates
from numatwin.validate.profile.callgrind import read_callgrind
from numatwin.validate.profile.counts import CallGraph, Totals
from numatwin.validate.profile.importers import Found
from numatwin.validate.profile.loops import Loop, counted, with_structures
from numatwin.validate.profile.native_run import run_native
from numatwin.validate.profile.workload_file import UNKNOWN, workload_text
from numatwin.workloads import load_workload


def test_functions_work_for_the_operators_that_call_them(tmp_path: Path) -> None:
    """``hash`` for the sink in 50 of 60 instructions, ``parse`` in 10 of 40; two runs."""
    made = operators(profiled(tmp_path, "--queries", "2", calls=CALLS, plan=json.dumps(PLAN)))
    assert made["outside-operators"].all_loops[0].instructions == pytest.approx(
        (200 + 60_000 * 10 / 60 + 40_000 * 30 / 40) / 2
    )
    group = made["hash-group-by"]
    assert (group.table, group.row_group) == ("t", 1000)
    assert [loop.instructions for loop in group.all_loops] == pytest.approx([25, 10, 20, 5])
    hashed = group.all_loops[0]
    assert [each.size.value for each in hashed.accessed] == [181 * 2.0**10, 2.0**22]
    assert group.all_loops[1].read.value == pytest.approx(0.125 * 64)
    assert all(loop.ipc and loop.ipc.range for loop in group.all_loops)


def graph_of(events: tuple[str, ...], *rows: tuple[float, ...], **more: Any) -> CallGraph:
    """Of a function for each row, which call nothing."""
    names, nothing = ("f", "g")[: len(rows)], np.zeros(0, dtype=np.int64)
    return CallGraph("", events, names, np.array(rows), nothing, nothing, np.zeros(0), **more)


@pytest.mark.parametrize(("size", "in_order"), [(2.0**21, [60.0, 5.0]), (2.0**26, [20.0, 1.0])])
def test_a_prefetcher_tells_lines_in_order(size: float, in_order: list[float]) -> None:
    """It foresees 60 and 5 of the 100 and 50 misses of 2 MiB; or 20 and 1 of those of 64 MiB."""

    def graph(size: float, *missed: tuple[float, float], prefetched: bool = False) -> CallGraph:
        rows = [(1e3, *row) for row in missed]
        caches = (0.0, size)
        return graph_of(("Ir", "DLmr", "DLmw"), *rows, caches=caches, prefetched=prefetched)

    left = (40.0, 45.0) if size == 2.0**21 else (10.0, 29.0)
    graphs = [
        graph(2.0**21, (90.0, 10.0), (50.0, 0.0)),
        graph(2.0**26, (22.0, 8.0), (30.0, 0.0)),
        graph(size, *((missed, 0.0) for missed in left), prefetched=True),
    ]
    found = counted(graphs)
    assert found.in_order is not None
    assert found.in_order.tolist() == in_order
    assert found.sizes.tolist() == [2.0**21, 2.0**26]
    assert found.written.tolist() == ([10.0, 0.0] if size == 2.0**21 else [8.0, 0.0])


@pytest.mark.parametrize(
    ("calls", "each_us", "lacking"), [(100.0, 9.0, 26.0), (100.0, 2.6, 12.5), (1e-3, 99.0, 2735.0)]
)
def test_what_a_call_displaces_is_fetched_anew(
    calls: float, each_us: float, lacking: float
) -> None:
    """Of 10,000 accesses of which caches of c lines miss c^-1/2: n in a row touch (1 + 3n/2)^2/3
    lines, at most all that a second cache holds; misses that happen anyway do not count. So 28 and
    8,192; short calls displace fewer, one each 8 ns beyond 2.5 µs. Each takes up to 14 cycles, as a
    fetch that misses the first cache, and one instruction's."""

    def graph(size: float) -> CallGraph:
        events = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "sysCount", "sysCpuTime")
        row = (1e4, 1e4, 0.0, 1e4 * (size / 64) ** -0.5, 0.0, calls, calls * each_us * 1e3)
        return graph_of(events, row, caches=(size, 2.0**23))

    small, large = graph(2.0**12), graph(2.0**19)
    text = workload_text(Found(None, (large, small), None), "f", 10)
    *_, loop = yaml.safe_load(text)["operations"]["f"]["operators"]["all"]["loops"]
    assert loop["structures"][0]["accesses"] == pytest.approx(lacking * calls / 10.0, rel=0.02)
    assert loop["at_once"]["range"] == [1.0, 4.0]
    assert loop["instructions"] == pytest.approx(lacking * calls / 10.0, rel=0.02)
    assert 1.0 / loop["ipc"]["value"] == pytest.approx(7.0 + 8.0**-0.5, rel=1e-3)
    assert loop["ipc"]["range"] == [pytest.approx(1.0 / 15.0, rel=1e-3), 8.0]
    assert counted((small, large)).sizes.tolist() == [2.0**19, 2.0**23]
    assert UNKNOWN["no_refills"] in workload_text(Found(None, (large,), None), "f", 10)


def test_misses_are_in_order_at_the_sizes_where_a_prefetcher_foresees_them() -> None:
    """Of 100 misses of a first cache 10 are not foreseen, of 60 of a large one 6: between them 9 of
    10 are in order at all sizes, beyond as many as of the large one."""

    def graph(first: float, last: float, *missed: float, prefetched: bool = False) -> CallGraph:
        events = ("Ir", "D1mr", "D1mw", "DLmr", "DLmw")
        row = (1e3, missed[0], 0.0, missed[1], 0.0)
        return graph_of(events, row, caches=(first, last), prefetched=prefetched)

    found = counted(
        [
            graph(2.0**15, 2.0**19, 100.0, 80.0),
            graph(2.0**21, 2.0**23, 60.0, 56.0),
            graph(2.0**15, 2.0**15, 100.0, 10.0, prefetched=True),
            graph(2.0**15, 2.0**21, 100.0, 6.0, prefetched=True),
        ]
    )
    assert found.in_order is not None
    assert found.in_order.tolist() == [54.0]
    assert found.at_random[:, 0] == pytest.approx([10.0, 8.0, 6.0, 2.0])


@pytest.mark.parametrize(("dirty", "written", "part"), [(35.0, 20.0, 0.5), (60.0, 30.0, 1.0)])
def test_lines_that_are_changed_are_written_back(dirty: float, written: float, part: float) -> None:
    """Of 120 misses 30 are at random, and 20 of the others write. 35 dirty ones leave 15 for those
    at random; of 60, some 10 more that were read in order must have been changed."""
    events = ("Ir", "D1mr", "D1mw", "DLmr", "DLmw", "DLdmr", "DLdmw")
    row, caches = (1e3, 150.0, 20.0, 100.0, 20.0, dirty - 5.0, 5.0), (2.0**15, 2.0**21)
    plain = graph_of(events, row, caches=caches)
    fetched = (1e3, 150.0, 20.0, 30.0, 0.0)
    ahead = graph_of(events[:5], fetched, caches=caches, prefetched=True)
    found = counted([plain, ahead])
    assert found.written.tolist() == pytest.approx([written])
    assert found.changed.tolist() == pytest.approx([part, part])


@pytest.mark.parametrize(("copied", "more"), [(0.0, 500.0), (16384.0, 0.0), (16384.0, 500.0)])
def test_bytes_of_a_copying_string_instruction_are_no_instructions(
    copied: float, more: float
) -> None:
    """Each reads and writes; other instructions access memory at most once here."""
    row = (copied + more, copied + more / 2, copied + more / 2)
    found = counted([graph_of(("Ir", "Dr", "Dw"), row)])
    assert found.instructions.tolist() == [copied / 32 + more]


def test_totals_alone_are_one_task(tmp_path: Path) -> None:
    (loop,) = operators(profiled(tmp_path, perf=PERF))["all"].all_loops
    assert (loop.instructions, loop.read.value) == (1e6, 2000 * 64)
    (loop,) = operators(profiled(tmp_path, perf=PERF.partition("\n")[0]))["all"].all_loops
    assert loop.read.value == 0
    notes = (tmp_path / "made.yaml").read_text()
    assert UNKNOWN["faults"] in notes
    assert "cache-misses were not counted" in notes
    assert "mispredicted branches were not counted" in notes
    counted = operators(profiled(tmp_path, perf=PERF + "400000;;cycles:u;500;100.00;;\n"))
    (loop,) = counted["all"].all_loops
    assert loop.ipc is not None
    assert loop.ipc.range == (2.5, 8.0)


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--", "no-such-program"]) == 2
    assert "no such program: found 'no-such-program'" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_command_runs_under_callgrind(tmp_path: Path) -> None:
    out = tmp_path / "made.yaml"
    assert main(["profile", "--out", str(out), "--", shutil.which("true") or ""]) == 0
    assert sum(loop.instructions for loop in operators(load_workload(out))["all"].all_loops) > 1e4


MAPS = """\
import mmap, os, subprocess
for pages in (2000, 1000):
    for mark in ("on", "off"):
        subprocess.run(["callgrind_control", "-i", mark, str(os.getpid())][:WORDS], check=True)
        new = mmap.mmap(-1, pages * mmap.PAGESIZE)
        for k in range(pages):
            new[k * mmap.PAGESIZE] = 1
"""


@pytest.mark.parametrize("words", [4, 3], ids=["of a process", "of the caller"])
def test_page_faults_are_those_of_the_region_or_the_whole(tmp_path: Path, words: int) -> None:
    """Of 6,000 pages 3,000, but for those of Python itself."""
    (tmp_path / "maps.py").write_text(MAPS.replace("WORDS", str(words)))
    command = (sys.executable, str(tmp_path / "maps.py"))
    found = [run_native(command, region=region).counts for region in (True, False)]
    assert found[0]["minor-faults"] == pytest.approx(3000, abs=100)
    assert found[1]["minor-faults"] > 6000
    assert found[1]["user_time"] + found[1]["system_time"] < 20e9
    (tmp_path / "maps.py").write_text("")
    assert run_native(command, region=True).counts == {}
    (tmp_path / "maps.py").write_text("exit(3)")
    assert "ended with status 3" in told_by(run_native, command)


def test_page_faults_go_to_who_writes_new_lines(tmp_path: Path) -> None:
    """``hash`` writes 131,072 of them, ``gather`` 4,096. perf's totals may have some."""
    totals = Totals("", {"minor-faults": 600.0, "user_time": 4e6, "system_time": 6e6})
    text = workload_text(Found(None, (read_callgrind(GROUPS, GROUPS.read_text()),), totals), "q", 2)
    loops = yaml.safe_load(text)["operations"]["q"]["operators"]["all"]["loops"]
    faults = [loop.get("page_faults", 0.0) for loop in loops]
    assert faults == pytest.approx([300 / 33, 300 * 32 / 33, 0.0], abs=1e-3)
    assert "page faults: 300 a query" in text
    assert "2 ms in user code, 3 ms in the kernel" in text
    made = operators(profiled(tmp_path, perf=PERF + "30;;page-faults;5;100;;\n"))
    assert made["all"].all_loops[0].page_faults == 30


def test_all_of_each_function_works_for_somebody() -> None:
    """As much is shared out as was counted, roots and the rest together."""
    graph = read_callgrind(GROUPS, GROUPS.read_text())
    assert isinstance(graph, CallGraph)
    share = graph.shares([[graph.position["hash"]], [graph.position["main"]]])
    assert share.sum(axis=1).max() <= 1.0
    own = graph.of("Ir") @ share
    assert own == pytest.approx([7_340_039, 5_242_886 + 6], rel=1e-5)


@given(st.lists(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3), min_size=1, max_size=4))
def test_structures_miss_as_was_counted(parts: list[list[float]]) -> None:
    """Loops that share structures, of sizes between those of the caches, miss all caches as often
    as they did together."""
    sizes = np.array([2.0**15, 2.0**20, 2.0**25])
    bytes_ = np.sqrt(sizes * np.array([2.0**20, 2.0**25, 2.0**29]))

    def misses(accessed: Any, bytes_: Any) -> Any:
        """(L, 3) of loops that access structures (L, K) times."""
        many = np.tile(accessed.sum(axis=0), (3, 1))
        hits = hit_rates(np.tile(bytes_ / 64, (3, 1)), many, sizes / 64)
        return accessed @ (1 - hits).T

    counts = misses(np.array(parts), bytes_)
    loops = [(1.0, Loop("f", 1.0, (1.0, 1.0, 1.0), 0.0, 0.0, at_random=one)) for one in counts]
    found = [loop.structures for loop in with_structures(sizes, np.zeros(3), loops)]
    each = sorted({one.size for all_ in found for one in all_})
    accessed = np.array(
        [[sum(one.accesses for one in all_ if one.size == size) for size in each] for all_ in found]
    )
    assert misses(accessed, np.array(each)) == pytest.approx(counts, rel=0.02, abs=2e-3)


def test_names_that_jumps_give_are_known_of_calls(tmp_path: Path) -> None:
    jumps = CALLS.replace("cfn=(3) hash", "jfn=(3) hash\njcnd=1/2 +3\n+1\ncfn=(3)")
    assert read_callgrind(tmp_path, jumps).names == read_callgrind(tmp_path, CALLS).names

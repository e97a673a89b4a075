"""Workloads of what perf has sampled: its samples by function, and where loads found their data."""

from pathlib import Path

import pytest

from numatwin.cli import main
from numatwin.validate.profile.counts import CallGraph
from numatwin.validate.profile.importers import read_profile, read_profiles
from numatwin.validate.profile.loops import counted, rates
from numatwin.workloads import load_workload
from numatwin.workloads.operators import CustomSpec

# Two samples of `perf script` (Linux 6.1) of one program, in the kernel and not, with calls.
SAMPLES = """\
h 20102  3088.230847:     250000 cpu-clock:
    ffffffff816049f9 __handle_mm_fault+0x279 ([kernel.kallsyms])
    ffffffff81000c82 asm_exc_page_fault+0x22 ([kernel.kallsyms])
                1152 hash+0x19 (/tmp/h)

h 20102  3088.570537:     750000 cpu-clock:
                1195 gather(int (*)(int))+0x2a (/tmp/h)

"""
PLAIN = """\
               h 20157          3 instructions:u:  5584ed91b15a hash+0x1 (/tmp/h)
               h 20157          5 cpu_core/branch-misses/u:  5584ed91b15a [unknown] (/tmp/h)
"""
TOTALS = "1000,,instructions:u,1,100,,\n500,,cycles,1,100,,\n80,,cache-misses,1,100,,\n"


def test_samples_of_time_share_what_was_counted(tmp_path: Path) -> None:
    """A quarter in the kernel, called by hash; 2 instructions a cycle with all misses."""
    (tmp_path / "script").write_text(SAMPLES)
    (tmp_path / "stat").write_text(TOTALS)
    found = counted(read_profiles([tmp_path / "script", tmp_path / "stat"]).graphs)
    graph = found.graph
    assert dict(zip(graph.names, found.instructions.tolist(), strict=True)) == {
        "__handle_mm_fault": 250.0,
        "gather(int (*)(int))": 750.0,
        "hash": 0.0,
        "asm_exc_page_fault": 0.0,
    }
    assert graph.names[graph.caller[1]] == "hash"
    assert graph.names[graph.callee[1]] == "asm_exc_page_fault"
    assert found.in_order is not None
    assert found.in_order.sum() == 80.0
    files = map(str, tmp_path.iterdir())
    assert main(["profile", *files, "--out", str(tmp_path / "made.yaml")]) == 0
    (operation,) = load_workload(str(tmp_path / "made.yaml")).operations.values()
    assert operation.operators is not None
    operator = operation.operators["all"]
    assert isinstance(operator, CustomSpec)
    loops = operator.all_loops
    assert [(loop.instructions, loop.read.value) for loop in loops] == [(750, 3840), (250, 1280)]
    assert all(loop.ipc is not None and loop.ipc.range == (2.0, 8.0) for loop in loops)


def test_samples_of_instructions_count_them(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(PLAIN)
    graph = read_profile(tmp_path / "script")
    assert isinstance(graph, CallGraph)
    assert (graph.events, graph.names) == (("Ir", "Bcm"), ("hash", "h:[unknown]"))
    assert graph.own.tolist() == [[3.0, 0.0], [0.0, 5.0]]


# perf mem report and perf c2c report, as in the commits that added AMD's IBS to them and in the
# documentation of false sharing on Arm.
MEM = """\
Samples: 836K of event 'ibs_op//', Event count (approx.): 8418762
Memory access                  Samples  Snoop
N/A                             700620  N/A
L1 hit                          126675  N/A
L2 hit                             424  N/A
L3 hit                             664  HitM
L3 hit                              10  N/A
Local RAM hit                        2  N/A
Remote RAM (1 hop) hit            8558  N/A
Uncached hit                         4  N/A
"""
C2C = """\
            Trace Event Information
=================================================
  Load Operations                   :    1031196
  Load Fill Buffer Hit              :          0
  Load L1D hit                      :     970636
  Load L2D hit                      :        292
  Load LLC hit                      :       2477
  Load Local HITM                   :          0
  Load Remote HITM                  :          0
  Load Remote HIT                   :      56459
  Load Local DRAM                   :       1332
  Load LLC Misses                   :      57791
"""
STDIO = (
    "# Overhead       Samples  Memory access\n    44.23%  267  LFB or LFB hit\n 5%  89  RAM hit\n"
)


@pytest.mark.parametrize(
    ("text", "beyond", "of"),
    [(MEM, 8_560, 136_337), (C2C, 57_791, 1_031_196), (STDIO, 89, 356)],
    ids=["mem", "c2c", "stdio"],
)
def test_sampled_loads_tell_misses(tmp_path: Path, text: str, beyond: int, of: int) -> None:
    (tmp_path / "levels").write_text(text)
    (tmp_path / "stat").write_text("9000,,instructions,1,100,,\n1000,,L1-dcache-loads,1,100,,\n")
    totals = read_profiles([tmp_path / "levels", tmp_path / "stat"]).totals
    assert totals is not None
    assert totals.counts["cache-misses"] == pytest.approx(1000 * beyond / of)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([SAMPLES], "samples of time, not of instructions: expected what 'perf stat -x,'"),
        ([PLAIN + "h 1\n"], "found 'h 1', expected a sample of perf script"),
        ([PLAIN.replace("instructions:u", "page-faults")], "no samples of instructions or time"),
        ([SAMPLES, TOTALS.replace("1000", "1.2.3")], "1:1: not a line of perf stat"),
        ([SAMPLES.replace("250000", "0").replace("750000", "0"), TOTALS], "no samples of instruc"),
        ([SAMPLES.replace("250000", "9" * 400), TOTALS], "0:1: too many: found '99"),
        ([MEM], "levels of loads alone: expected perf stat -x, too"),
        ([MEM, TOTALS], "loads were not counted: expected perf stat -x, -e L1-dcache-loads"),
        ([STDIO.partition("\n")[0], TOTALS], "no sampled loads whose level is known"),
        ([C2C + "  Events : cpu/mem-loads,ldlat=30/P\n", TOTALS], "slow loads alone were sampled"),
    ],
)
def test_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: list[str], expected: str
) -> None:
    for k, text in enumerate(files):
        (tmp_path / str(k)).write_text(text)
    assert main(["profile", *map(str, tmp_path.iterdir())]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_instruction_fetches_that_miss_take_their_time() -> None:
    """1,000 instructions, 10 fetches of 14 cycles: none, half of them, or all."""
    middle, least, most = rates(1000.0, None, 10.0)
    assert 1000.0 / middle == pytest.approx(1000.0 / 8.0**0.5 + 70.0)
    assert 1000.0 / least == pytest.approx(1140.0)
    assert most == 8.0

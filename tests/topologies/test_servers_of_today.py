"""Bundled servers of today against public measurements that their files were not made from.

The same processor in another server, by another tool, differs by up to a tenth; rows whose own
source is wider apart have their tolerance beside them. Not found measured elsewhere: all nodes of
Xeon Max, Emerald Rapids, Kunpeng; remote bandwidth of EPYC, Xeon Max, Granite Rapids; latencies of
Kunpeng, Grace, Granite Rapids; the expander; the GPU's memory.
"""

import pytest

from numatwin import load_scenario, run_scenario
from numatwin.topologies import load_machine

MESS = "github.com, bsc-mem/Mess-Results: "
# Emerald Rapids by its bandwidths; its two modes are up to 16% from their mean.
DRAMHIT = "mars-research/DRAMHiT, eurosys_2026/collect_mlc: mean of mlc_dir.txt and mlc_snoop.txt"
WAYCA = "github.com, openeuler-mirror/wayca-scheduler, tools/kp920.2P.8CCL.type4: triad, 16 threads"

# Machine, what (pairs of nodes are reader and home), GB/s or ns, tolerance, source.
CHECKS = [
    ("xeon-2s-max-flat", "GB/s 0 0", 271, 0.15, MESS + "Xeon Max 9462 at Jülich, DDR5"),
    ("xeon-2s-max-flat", "GB/s 0 2", 425, 0.1, MESS + "Xeon Max 9462 at Jülich, HBM"),
    ("xeon-2s-max-flat", "ns 0 0", 116, 0.1, MESS + "MN5-GPP, Xeon 8480+ (same mesh), DDR5-4800"),
    ("xeon-2s-emr", "GB/s 0 0", 248.5, 0.1, MESS + "Intel-EMR, Xeon 8568, DDR5-4800, local"),
    ("xeon-2s-emr", "GB/s 0 1", 154.8 * 3 / 4, 0.1, MESS + "Intel-EMR, remote, 3 of 4 links"),
    ("xeon-2s-emr", "ns 0 0", 108.6, 0.15, DRAMHIT),
    ("xeon-2s-emr", "ns 0 1", 179.0, 0.15, DRAMHIT),
    ("xeon-1s-emr-cxl", "GB/s 0 0", 267.4, 0.1, MESS + "MN5-ACC, Xeon 8460Y+, DDR5-4800"),
    ("xeon-1s-emr-cxl", "ns 0 0", 110.9, 0.1, MESS + "MN5-ACC, Xeon 8460Y+, DDR5-4800"),
    ("epyc-2s-nps1", "GB/s all", 715, 0.1, "Microsoft Learn: STREAM of Azure HBv4, 650 to 780"),
    ("epyc-2s-nps1", "ns mean", 159.2, 0.1, "ktransformers issue 828: 2 × 9654, NPS0, AIDA64"),
    ("kunpeng-2s-4n", "GB/s 0 0", 58.3, 0.15, WAYCA + " (59.0 by copy; slower than its other die)"),
    ("kunpeng-2s-4n", "GB/s 0 1", 65.9, 0.1, WAYCA),
    ("kunpeng-2s-4n", "GB/s 0 2", 63.5, 0.1, WAYCA),
    ("kunpeng-2s-4n", "GB/s 0 3", 62.4, 0.1, WAYCA),
    ("gh200", "GB/s 0 0", 442.1, 0.1, MESS + "Grace, reads"),
    ("gh200", "GB/s all", 486, 0.1, "Schieffer et al., ICPP 2024, as HPCwire has it: STREAM"),
    ("xeon-2s-gnr-snc3", "GB/s all", 2 * 561.3 * 8.8 / 6.4, 0.1, MESS + "6980P, DDR5-6400"),
]  # fmt: skip


def predicted(name: str, what: str) -> float:
    """In GB/s or ns; all nodes at once scan their own memory, as the flow plane has it."""
    machine = load_machine(name)
    unit, *nodes = what.split()
    if nodes == ["all"]:
        count = sum(node.cores > 0 for node in machine.nodes)
        scans = load_scenario("eris-fig9", machine=name, settings=[f"system.nodes={count}"])
        parts = run_scenario(scans).resources
        return float(sum(one.Bps or 0.0 for one in parts if one.name.startswith("memory of"))) / 1e9
    table = machine.latency_ns if unit == "ns" else machine.bandwidth_Bps / 1e9
    return float(table.mean() if nodes == ["mean"] else table[int(nodes[0]), int(nodes[1])])


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: f"{row[0]}, {row[1]}")
def test_measured_elsewhere(row: tuple[str, str, float, float, str]) -> None:
    name, what, measured, tolerance, source = row
    assert predicted(name, what) == pytest.approx(measured, rel=tolerance), source

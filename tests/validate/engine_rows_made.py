"""Throughputs of an engine with known costs: what the model predicts of it, with noise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.scenario_parts import on_machine
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.eris.profile import ErisProfile

MACHINE = """\
name: small
node_types:
  node:
    cores: 8
    clock: 3 GHz
    ipc: 1.5
    outstanding_misses: 4
    caches:
    - {level: 1, size: 32 KiB, latency: 1.5 ns}
    - {level: 2, size: 1 MiB, latency: 5 ns}
    - {level: 3, size: 16 MiB, latency: 20 ns, shared_by_cores: 8}
    memory: {size: 64 GiB, bandwidth: 40 GB/s, latency: 100 ns}
nodes: [{id: 0, type: node}]
"""
SHARED = "system.placement=interleaved"
Row = tuple[str, int, int]
ROWS: tuple[Row, ...] = tuple(
    (operation, threads, keys)
    for operation, threads in (("lookup", 1), ("lookup", 4), ("upsert", 1))
    for keys in (10**4, 10**6, 3 * 10**7, 10**9)
)


def machine_in(folder: Path) -> str:
    path = folder / "small.yaml"
    path.write_text(MACHINE)
    return str(path)


def throughput(machine: str, row: Row, truth: Mapping[str, float], nodes: int = 1) -> float:
    """With the row's threads on each of so many nodes."""
    operation, threads, keys = row
    shares = {name: float(name == operation) for name in ("lookup", "upsert")}
    run = load_scenario(
        "eris-mixed-amd",
        machine=machine,
        settings=[
            SHARED,
            f"system.threads={threads}",
            f"system.nodes={nodes}",
            f"workload.objects.index.keys={keys}",
            *(f"workload.operations.{name}.share={share}" for name, share in shares.items()),
        ],
    )
    made = on_machine(run.machine, "eris", ErisProfile.model_validate(truth))
    return float(flow_plane(replace(run, machine=made)).steady().flows.sum())


def written(
    folder: Path,
    truth: Mapping[str, float],
    rows: Sequence[Row] = ROWS,
    noise: float = 0.0,
    seed: int = 0,
) -> Path:
    """The CSV of these rows."""
    rng = np.random.default_rng(seed)
    machine = machine_in(folder)
    lines = ["# made by the model", "operation,threads,keys,throughput,spread"]
    for row in rows:
        value = throughput(machine, row, truth) * np.exp(noise * rng.standard_normal())
        lines.append(f"{row[0]},{row[1]},{row[2]},{value:.6g},{100 * max(noise, 0.005):g}%")
    path = folder / "store.csv"
    path.write_text("\n".join(lines) + "\n")
    return path

"""Scenarios on a small made-up machine, round numbers throughout, so that results can be worked out
by hand.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.run.what_if import flow_plane
from numatwin.sim.systems.eris.spec import ErisSystem

CORES, MEMORY_BPS, LINK_BPS, LATENCY_S = 4, 40e9, 10e9, 100e-9
INSTRUCTIONS_PER_S = 4e9 * 2
COLUMN_BYTES = 8e9

# No caches, no translation buffers: every line that is asked for comes from memory.
SMALL = """\
name: small
machine:
  name: small
  node_types:
    plain:
      cores: 4
      clock: 4 GHz
      ipc: 2
      outstanding_misses: 10
      streaming_misses: 100
      reorder_window: 1000
      caches: [{caches}]
      memory: {{size: 64 GiB, bandwidth: 40 GB/s, latency: 100 ns}}
  nodes: [{{ids: 0-{last}, type: plain}}]
  link_types:
    link: {{bandwidth: 10 GB/s, latency: 50 ns, data_header: 8 B, request: 8 B}}
  {links}
  coherence: {{protocol: {protocol}}}
  engines: {{eris: {{implementation: published, lines_in_flight: 1000}}}}
workload:
  name: small
  objects:
    index: {{kind: index, keys: 100_000_000}}
    column: {{kind: column, entries: 1_000_000_000, entry_size: 8 B}}
  operations:
    {operations}
system: {{placement: {placement}, threads: cores}}
horizon: 1 s
"""
LOOKUP = "lookup: {kind: lookup, object: index}"
UPSERT = "upsert: {kind: upsert, object: index}"
SCAN = "scan: {kind: scan, object: column}"
CACHE = "{level: 3, size: 8 MiB, shared_by_cores: 4, line: 64 B, latency: 20 ns}"
NODE = "machine.node_types.plain."
LINK = "machine.link_types.link."


def small_file(
    folder: Path,
    operations: str,
    placement: str = "partitioned",
    *,
    nodes: int = 1,
    shape: str = "all_to_all",
    protocol: str = "directory",
    caches: str = "",
) -> Path:
    """The file of such a scenario."""
    links = f"generate: [{{shape: {shape}, link: link}}]" if nodes > 1 else "notes: []"
    text = SMALL.format(
        last=nodes - 1,
        links=links,
        protocol=protocol,
        operations=operations,
        placement=placement,
        caches=caches,
    )
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def small(path: Path, *settings: str) -> Scenario:
    """The scenario in that file, with settings."""
    return load_scenario(path, settings=settings)


def ran(path: Path, *settings: str) -> Record:
    """Its Record."""
    return run_scenario(small(path, *settings))


def rate(path: Path, *settings: str) -> float:
    """All operations per second on the flow plane, while nothing changes."""
    return float(flow_plane(small(path, *settings)).rates().flows.sum())


def eris_of(scenario: Scenario) -> ErisSystem:
    """The system of a scenario of ERIS."""
    assert isinstance(scenario.system, ErisSystem)
    return scenario.system


def as_told(record: Record) -> dict[str, Any]:
    """All of a Record that may not differ between two runs."""
    head = {k: v for k, v in record.as_json().items() if k not in ("provenance", "wall_s")}
    digest = hashlib.sha256()
    for name, column in record.series.items():
        digest.update(name.encode() + np.ascontiguousarray(column).tobytes())
    return head | {"series": digest.hexdigest()}

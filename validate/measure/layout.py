"""Which CPUs and memory of this host may be measured: its nodes, less what is forbidden or full."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...inputs import InputError
from ...topologies import build_machine
from ...topologies.importers import import_machine
from ...topologies.importers.number_sets import format_list, parse_list
from ...topologies.machine import CacheLevel
from ...topologies.schema import MachineDescription

# Of the memory that is free: the rest stays for page cache and for others.
MEMORY_SHARE = 0.25
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class NodeLayout:
    """A node: the CPUs that may be used, one of each core first, and memory that may be used."""

    id: int
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    memory_bytes: int
    last_cache_bytes: int


@dataclass(frozen=True)
class Layout:
    """The host as it is measured. ``notes``: what of it is left out, and why."""

    description: MachineDescription
    nodes: tuple[NodeLayout, ...]
    caches: tuple[CacheLevel, ...]
    notes: tuple[str, ...]

    @property
    def starts(self) -> tuple[NodeLayout, ...]:
        """The nodes with CPUs."""
        return tuple(node for node in self.nodes if node.cores)

    @property
    def homes(self) -> tuple[NodeLayout, ...]:
        """The nodes with memory."""
        return tuple(node for node in self.nodes if node.memory_bytes)

    @property
    def cpus(self) -> tuple[int, ...]:
        """All CPUs that may be used."""
        return tuple(cpu for node in self.nodes for cpu in node.cpus)

    def binding(self, node: NodeLayout) -> int:
        """The node to bind memory to; -1, none, where there is but one."""
        return node.id if len(self.nodes) > 1 else -1


def host_layout() -> Layout:
    """This host's; raises InputError where it has nothing to measure on."""
    description = import_machine(None)
    machine = build_machine(description)
    allowed = os.sched_getaffinity(0)
    homes = _allowed_memories()
    online = {cpu for node in machine.nodes for cpu in node.cpus}
    notes = []
    if forbidden := online - allowed:
        notes.append(
            f"CPUs {format_list(forbidden)} are forbidden to this process (cpuset or affinity): "
            "not measured"
        )
    first_thread = _first_threads(online & allowed)
    limit = _memory_limit() // max(len(machine.nodes), 1)
    nodes = []
    for node in machine.nodes:
        cpus = tuple(cpu for cpu in node.cpus if cpu in allowed)
        permitted = homes is None or node.id in homes
        if not permitted:
            notes.append(f"memory of node {node.id} is forbidden to this process: not measured")
        free = _node_free_bytes(node.id) if len(machine.nodes) > 1 else _available_bytes()
        has_memory = permitted and not node.memory_bytes == 0
        shared = {cache.level: cache for cache in node.caches}
        last = shared[max(shared)] if shared else None
        per_cache = last.shared_by_cores if last else 1
        nodes.append(
            NodeLayout(
                node.id,
                cpus,
                tuple(cpu for cpu in cpus if cpu in first_thread),
                int(MEMORY_SHARE * min(free, limit)) if has_memory else 0,
                int(last.size_bytes * -(-max(node.cores, 1) // per_cache)) if last else 0,
            )
        )
    if not any(node.cpus for node in nodes) or not any(node.memory_bytes for node in nodes):
        raise InputError("this host: no CPU and memory that this process may use")
    caches = next(node.caches for node in machine.nodes if node.cores)
    return Layout(description, tuple(nodes), caches, tuple(notes))


def read_text(path: str) -> str | None:
    """The text of a file of the kernel's, None where there is none."""
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _first_threads(cpus: set[int]) -> set[int]:
    """The lowest usable CPU of each core."""
    first = set()
    for cpu in cpus:
        folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        text = read_text(f"{folder}/core_cpus_list") or read_text(f"{folder}/thread_siblings_list")
        try:
            siblings = parse_list(text or "") & cpus
        except ValueError:
            siblings = frozenset()
        first.add(min(siblings, default=cpu))
    return first


def _allowed_memories() -> frozenset[int] | None:
    found = re.search(r"^Mems_allowed_list:\s*(\S+)", read_text("/proc/self/status") or "", re.M)
    try:
        return parse_list(found[1]) if found else None
    except ValueError:
        return None


def _available_bytes() -> int:
    return _kilobytes(read_text("/proc/meminfo"), "MemAvailable")


def _node_free_bytes(node: int) -> int:
    """Free pages, and those of files, which the kernel gives up."""
    text = read_text(f"/sys/devices/system/node/node{node}/meminfo")
    if text is None:
        return _available_bytes()
    return _kilobytes(text, "MemFree") + _kilobytes(text, "Inactive(file)")


def _kilobytes(text: str | None, name: str) -> int:
    found = re.search(rf"\b{re.escape(name)}:\s*(\d+) kB", text or "")
    return int(found[1]) * 1024 if found else 0


def _memory_limit() -> int:
    """What the process's control group may still take, of version 2 or 1; beyond it, it is killed."""
    left = _UNLIMITED
    for line in (read_text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            pair = ("/sys/fs/cgroup" + path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            folder = "/sys/fs/cgroup/memory" + path
            pair = (folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        limit, used = (read_text(f"{pair[0]}/{name}") for name in pair[1:])
        if limit and limit.isdigit():
            left = min(left, int(limit) - int(used or 0))
    return max(left, 0)
